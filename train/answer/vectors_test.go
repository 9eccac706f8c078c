package answer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"giantstream/internal/race"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/generation/generationtest"
	"giantstream/train/numeric"
)

// seen is a source whose nodes have vectors.
type seen struct {
	generationtest.Source
	vectors []rows.Vectors
}

func (s seen) Vectors() []rows.Vectors { return s.vectors }

// restated is a log in which some nodes have other vectors after the cut.
type restated struct {
	history
	vectors []rows.Vectors
}

func (l *restated) Stretches(ctx context.Context, shard int, after int64) iter.Seq2[Stretch, error] {
	return func(yield func(Stretch, error) bool) {
		for s, err := range l.history.Stretches(ctx, shard, after) {
			s.Vectors = func(yield func(rows.Vectors, error) bool) {
				for _, v := range l.vectors {
					if !yield(v, nil) {
						return
					}
				}
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// A node that has another vector after the cut is found by it.
func TestVectorsFollowTheLog(t *testing.T) {
	race.SkipComputing(t)
	const nodes, groups = 600, 20
	r := rand.New(rand.NewPCG(9, 9))
	var s seen
	centres := make([]float64, 24*groups)
	for k := range centres {
		centres[k] = r.NormFloat64()
	}
	for i := range nodes {
		var b []byte
		for k := range 24 {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(centres[i%groups*24+k]+0.5*r.NormFloat64())))
		}
		id := fmt.Sprintf("node-%04d", i)
		s.vectors = append(s.vectors, rows.Vectors{NodeID: id, Names: []string{"image"}, Bits: []int32{32},
			Values: [][]byte{b}})
		row := rows.Row{NodeID: id, EventTime: 1}
		for range 12 {
			row.Text += fmt.Sprintf("word%d ", r.IntN(60))
		}
		for k := range groups { // 20 of its group, both ways
			if j := (i + (2*k-groups+1)*groups + nodes) % nodes; j != i {
				row.Labels = append(row.Labels, fmt.Sprintf("node-%04d", j))
			}
		}
		slices.Sort(row.Labels)
		s.Source = append(s.Source, row)
	}
	settings := shopSettings()
	settings.Encoder, settings.Epochs, settings.LeafSize, settings.FromOrders = "hybrid", 1, 20, nil
	store := &memstore.Store{}
	doc := generationtest.Build(t, store, s, settings)
	if v := doc.Graph.Vectors; len(v) != 1 || v[0].Weight == 0 {
		t.Fatalf("the vectors weigh %+v", v)
	}
	g, err := generation.Open(t.Context(), store, doc, nil)
	if err != nil {
		t.Fatal(err)
	}
	of := s.vectors[1] // of another group
	of.NodeID = s.Source[0].NodeID
	log := &restated{history{{}, {node(s.Source[0].NodeID, s.Source[0].Text, ""), node("new", s.Source[1].Text, "")}},
		[]rows.Vectors{of, {NodeID: "new", Names: of.Names, Bits: of.Bits, Values: of.Values}}}
	c := New(Options{Store: store, Log: log, Shards: 1, Generation: func() *generation.Generation { return g }})
	if _, err := c.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
	index := c.now.Load().index
	vector := func(id string) []float32 {
		v := make([]float32, index.Dim())
		index.Vector(id, v)
		return v
	}
	if !slices.Equal(vector("new"), vector(s.Source[1].NodeID)) {
		t.Errorf("of two nodes with a text and a vector, the one of the log has %v, that of the build %v", vector("new"),
			vector(s.Source[1].NodeID))
	}
	like := []Like{{ID: "new", Weight: 1}}
	if _, err := c.Similar(like, Wanted{K: 1, Explain: true}); !errors.Is(err, ErrTexts) {
		t.Errorf("before texts are read: %v", err)
	}
	update(t, c)
	near, err := c.Similar(like, Wanted{K: 600, Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(near.Neighbours, func(n Neighbour) bool { return n.ID == of.NodeID })
	if n := near.Neighbours[at]; n.Because == nil {
		t.Errorf("%+v", n)
	} else if v := n.Because.Views[len(n.Because.Views)-1]; v.Name != "vector.image" || v.Cosine < 0.1 {
		addUp(t, n)
		t.Errorf("of a node with the same vector %+v", n.Because)
	}
	f := g.Following()
	f.Follow(&of)
	want, err := f.EmbedNodes([]string{of.NodeID}, []string{s.Source[0].Text})
	if err != nil {
		t.Fatal(err)
	}
	before, err := g.EmbedNodes([]string{of.NodeID}, []string{s.Source[0].Text})
	if err != nil {
		t.Fatal(err)
	}
	got := vector(of.NodeID) // in eight bits
	if !(numeric.Cosine(got, want[0].Vector) > 0.999) || !(numeric.Cosine(got, before[0].Vector) < 0.9) {
		t.Errorf("the node has %v, at the cut %v, want %v", got, before[0].Vector, want[0].Vector)
	}
}
