package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"giantstream/sink/embedding"
	"giantstream/train"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/generation/fit"
	"giantstream/train/numeric"
)

// encodeStats is what encode, or fill, leaves for the generation's document.
type encodeStats struct {
	NoText         int `json:"no_text"`
	FromNeighbours int `json:"from_neighbours,omitempty"`
	// GPUMath is how a GPU multiplied, "" for float32 and a CPU.
	GPUMath compute.Math `json:"gpu_math,omitempty"`
}

// encode embeds a partition's texts. It writes the embeddings, unless nodes without text are to have those of their
// neighbours, which may be in any partition. It holds the partition's embeddings in memory.
//
//	sampled  by block: the embeddings of the nodes that are in the sample, float32
//	vectors  where fill follows, by block: the embeddings, float32
//	status   where fill follows: a byte for each node, 1 for one without text
func (t *task) encode(ctx context.Context) error {
	e, release, err := t.sharedEncoder(ctx)
	if err != nil {
		return err
	}
	defer release()
	p, err := t.partition(ctx, false)
	if err != nil {
		return err
	}
	v := embedded{dim: e.Dim(), vectors: make([]float32, len(p.nodes)*e.Dim()),
		status: make([]embedding.Status, len(p.nodes))}
	if err := t.embed(ctx, e, p.texts, v); err != nil {
		return err
	}
	if err := t.putSampledVectors(ctx, v); err != nil {
		return err
	}
	s := encodeStats{GPUMath: t.math()}
	for i, text := range p.texts {
		var r embedding.Record
		r.SetVector(text, v.row(i))
		if v.status[i] = r.Status; r.Status == embedding.NoText {
			s.NoText++
		}
	}
	t.stats = s
	if !t.plan.Fill {
		return t.writeEmbeddings(ctx, p, v)
	}
	vectors, status := t.newSections(blocks(len(p.nodes))), t.newSections(1)
	defer vectors.close() //nolint:errcheck // temporary files
	defer status.close()  //nolint:errcheck
	var b []byte
	for i := range p.nodes {
		if err := vectors.add(i/block, appendFloats(b[:0], v.row(i))); err != nil {
			return err
		}
		without := byte(0)
		if v.status[i] == embedding.NoText {
			without = 1
		}
		if err := status.add(0, []byte{without}); err != nil {
			return err
		}
	}
	return errors.Join(t.putSections(ctx, "vectors", vectors), t.putSections(ctx, "status", status))
}

// embed encodes the texts of the partition.
func (t *task) embed(ctx context.Context, e train.Encoder, texts []string, v embedded) error {
	of, takesFeatures := e.(train.FeatureEncoder)
	if !takesFeatures {
		for lo := 0; lo < len(texts); lo += block {
			hi := min(lo+block, len(texts))
			if err := errors.Join(ctx.Err(), e.Encode(texts[lo:hi], v.vectors[lo*v.dim:hi*v.dim])); err != nil {
				return err
			}
		}
		return nil
	}
	model, err := t.loadVectorizer(ctx)
	if err != nil {
		return err
	}
	return t.counted(ctx, model, t.Partition, func(lo int, c *counted) error {
		hi := lo + len(c.records)
		return errors.Join(ctx.Err(), of.EncodeFeatures(texts[lo:hi], c.features, v.vectors[lo*v.dim:hi*v.dim]))
	})
}

// putSampledVectors stores the embeddings of the nodes that evaluate asks about.
func (t *task) putSampledVectors(ctx context.Context, v embedded) error {
	sampled, err := t.sampledOf(ctx, t.Partition)
	if err != nil {
		return err
	}
	out := t.newSections(blocks(len(sampled)))
	defer out.close() //nolint:errcheck // a temporary file
	var b []byte
	for k, i := range sampled {
		b = appendFloats(b[:0], v.row(int(i)))
		if err := out.add(k/block, b); err != nil {
			return err
		}
	}
	return t.putSections(ctx, "sampled", out)
}

// embedded are the embeddings of a partition.
type embedded struct {
	dim     int
	vectors []float32
	status  []embedding.Status
}

func (e embedded) row(i int) []float32 { return e.vectors[i*e.dim : (i+1)*e.dim : (i+1)*e.dim] }

// writeEmbeddings writes the embeddings of a partition, one part for each shard that has nodes in it, in ascending
// order of ids.
func (t *task) writeEmbeddings(ctx context.Context, p *partition, v embedded) error {
	trained, err := stats[encoderStats](ctx, t.build, Encoder, 0)
	if err != nil {
		return err
	}
	space := trained.Space
	if space == t.plan.Generation {
		space = 0
	}
	stored := t.doc.Settings.Stored
	for shard := range t.plan.Shards {
		var of []embedding.Record
		for _, i := range p.byID {
			n := &p.nodes[i]
			if n.shard != shard {
				continue
			}
			r := embedding.Record{NodeID: string(n.id), Generation: t.plan.Generation, Space: space, EventTime: n.time,
				Shard: shard, Seq: n.seq, Status: v.status[i]}
			if r.Status != embedding.NoText {
				r.Vector = v.row(i)
			}
			of = append(of, r)
		}
		if len(of) == 0 {
			continue
		}
		name := fmt.Sprintf("part-%05d-%05d.parquet", shard, t.Partition)
		key := t.final("embeddings/" + name)
		info, err := embedding.WriteParquet(ctx, t.Store, key, stored.Type, narrowed(of, stored))
		if err != nil {
			return err
		}
		t.outputs[name] = output{Key: key, Bytes: info.Bytes, CRC32C: info.CRC32C, Rows: info.Rows, Shard: shard}
	}
	return nil
}

func narrowed(records []embedding.Record, f embedding.Format) iter.Seq2[embedding.Record, error] {
	return func(yield func(embedding.Record, error) bool) {
		for _, r := range records {
			if !yield(f.Narrow(r), nil) {
				return
			}
		}
	}
}

// fill gives nodes without text the mean of their neighbours' embeddings, and writes the embeddings of a partition. It
// reads the blocks of embeddings that have a neighbour of such a node, in ascending order, each once.
func (t *task) fill(ctx context.Context) error {
	s, err := stats[encodeStats](ctx, t.build, Encode, t.Partition)
	if err != nil {
		return err
	}
	x, err := t.numbered(ctx)
	if err != nil {
		return err
	}
	own, err := t.embedded(ctx, t.Partition)
	if err != nil {
		return err
	}
	defer own.Close()
	v := embedded{status: own.status}
	for k := range blocks(x.size(t.Partition)) {
		rows, dim, err := own.block(k)
		if err != nil {
			return err
		}
		v.vectors, v.dim = append(v.vectors, rows...), dim
	}
	if err := t.fillFrom(ctx, x, v); err != nil {
		return err
	}
	for i := range v.status {
		if v.status[i] == embedding.FromNeighbours {
			s.FromNeighbours++
		}
	}
	p, err := t.nodesOf(ctx)
	if err != nil {
		return err
	}
	t.stats = s
	return t.writeEmbeddings(ctx, p, v)
}

// fillFrom adds up the embeddings of the neighbours of nodes without text.
func (t *task) fillFrom(ctx context.Context, x index, v embedded) error {
	type want struct{ of, node int32 } // the position of a neighbour, and who wants it
	var wanted []want
	if err := t.links(ctx, t.Partition, func(i int, to []int32, hidden []bool) error {
		if v.status[i] == embedding.NoText {
			for _, j := range ascending(to, hidden, true) {
				wanted = append(wanted, want{j, int32(i)})
			}
		}
		return nil
	}); err != nil {
		return err
	}
	slices.SortFunc(wanted, func(a, b want) int { return cmp.Or(cmp.Compare(a.of, b.of), cmp.Compare(a.node, b.node)) })
	empty := make([]int, 0)
	for i, s := range v.status {
		if s == embedding.NoText {
			clear(v.row(i))
			empty = append(empty, i)
		}
	}
	for len(wanted) > 0 {
		p := x.of(int(wanted[0].of))
		from, err := t.embedded(ctx, p)
		if err != nil {
			return err
		}
		at, rows := -1, []float32(nil)
		for len(wanted) > 0 && int(wanted[0].of) < x.Base[p+1] && err == nil {
			w := wanted[0]
			wanted = wanted[1:]
			j := int(w.of) - x.Base[p]
			if from.status[j] != embedding.FromText {
				continue
			}
			if j/block != at {
				at = j / block
				rows, _, err = from.block(at)
			}
			if k := j % block * v.dim; err == nil && k+v.dim <= len(rows) {
				numeric.Axpy(1, rows[k:k+v.dim], v.row(int(w.node)))
			} else if err == nil {
				err = from.from.explain(errShort)
			}
		}
		if err = errors.Join(err, from.Close(), ctx.Err()); err != nil {
			return err
		}
	}
	for _, i := range empty {
		if fit.Direction(v.row(i)) {
			v.status[i] = embedding.FromNeighbours
		}
	}
	return nil
}

// encoded are the outputs of encode where fill follows. Close it after use.
type encoded struct {
	*input
	status []embedding.Status
}

func (b *build) embedded(ctx context.Context, p int) (*encoded, error) {
	x, err := b.numbered(ctx)
	if err != nil {
		return nil, err
	}
	from, err := b.from(ctx, Encode, p)
	if err != nil {
		return nil, err
	}
	data, err := from.section(ctx, "status", 0)
	if err == nil && len(data) != x.size(p) {
		err = from.explain(errShort)
	}
	if err != nil {
		return nil, err
	}
	e := &encoded{}
	for _, without := range data {
		s := embedding.FromText
		if without == 1 {
			s = embedding.NoText
		}
		e.status = append(e.status, s)
	}
	e.input, err = from.sections(ctx, "vectors")
	return e, err
}

// block returns the vectors of a block, and their dimension.
func (e *encoded) block(k int) (rows []float32, dim int, err error) {
	b, err := e.section(k)
	if err != nil {
		return nil, 0, err
	}
	rows = make([]float32, len(b)/4)
	floats(b, rows)
	return rows, len(rows) / max(1, min(block, len(e.status)-k*block)), nil
}
