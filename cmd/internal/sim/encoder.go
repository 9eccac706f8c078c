package sim

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"giantstream/sink"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
	"giantstream/stream/oracle"
)

// dim is the dimension of embeddings.
const dim = 3

// embeddingOf returns the embedding of a node. It tells the generation, the text, and what counts of the vectors.
func embeddingOf(generation int64, text, vectors string) []float32 {
	short := func(s string) float32 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], dice(generation).hash(s))
		return float32(binary.LittleEndian.Uint16(word[:]))
	}
	return []float32{float32(generation), short(text), short(vectors)}
}

// stated is what the inputs state of nodes' vectors, as far as it counts for a generation: by node and input.
type stated map[string]map[uint8]string

// set lets a node have the vectors that an input states.
func (s stated) set(generation int64, v oracle.NodeVectors) {
	if s[v.ID] == nil {
		s[v.ID] = map[uint8]string{}
	}
	if s[v.ID][v.Input] = counted(generation, v); s[v.ID][v.Input] == "" {
		delete(s[v.ID], v.Input)
	}
}

// counted is what of vectors counts for a generation. What a node is ordered with begins with the generation that knows
// what it means.
func counted(generation int64, v oracle.NodeVectors) (all string) {
	for _, one := range v.Vectors {
		if one.Name != rows.OrderedName || int64(one.Data[0]) == generation {
			all += fmt.Sprintf("%s %x;", one.Name, one.Data)
		}
	}
	return all
}

// ofNode is all that counts of a node.
func (s stated) ofNode(id string) (all string) {
	for _, input := range slices.Sorted(maps.Keys(s[id])) {
		all += fmt.Sprint(input, " ", s[id][input])
	}
	return all
}

// orderedVector draws a vector of what a node is ordered with, for one of the first generations.
func orderedVector(r *rand.Rand) []mutation.Vector {
	return []mutation.Vector{{Name: rows.OrderedName, Precision: mutation.Float16,
		Data: string([]byte{byte(1 + r.IntN(4)), byte(r.IntN(3))})}}
}

// statedAt reads what counts at the cut of a generation.
func statedAt(ctx context.Context, s sink.Store, generation int64, cut commitlog.Cut, shards int) (stated, error) {
	all := stated{}
	for shard := range shards {
		for row, err := range cut.NewestVectors(ctx, s, shard) {
			if err != nil {
				return nil, err
			}
			all.set(generation, oracle.VectorsOf(&row.Vectors))
		}
	}
	return all, nil
}

// encoder makes embeddings of nodes as they are now. It implements publish.Encoder.
type encoder struct {
	generation int64
	vectors    stated
}

// following returns an encoder that has the vectors as of the cut.
func (g *generation) following() *encoder {
	e := &encoder{g.number, stated{}}
	for id, of := range g.Vectors {
		e.vectors[id] = maps.Clone(of)
	}
	return e
}

// Follow implements publish.Encoder.
func (e *encoder) Follow(r *rows.Vectors) { e.vectors.set(e.generation, oracle.VectorsOf(r)) }

// Encode implements publish.Encoder.
func (e *encoder) Encode(ids, texts []string, out []float32) error {
	for i, id := range ids {
		copy(out[i*dim:], embeddingOf(e.generation, texts[i], e.vectors.ofNode(id)))
	}
	return nil
}
