package embeddings

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"giantstream/sink/embedding"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/fit"
	"giantstream/train/numeric"
)

// Fill gives nodes without text the mean of their neighbours' embeddings, and writes the embeddings of a partition. It
// reads the blocks of embeddings that have a neighbour of such a node, in ascending order, each once.
func Fill(ctx context.Context, t *work.Task) error {
	s, err := work.StatsOf[encodeStats](ctx, t.Build, stages.Encode, t.Partition)
	if err != nil {
		return err
	}
	x, err := graph.LoadNumbering(ctx, t.Build)
	if err != nil {
		return err
	}
	own, err := openEncoded(ctx, t.Build, t.Partition)
	if err != nil {
		return err
	}
	defer own.Close()
	v := embedded{status: own.status}
	for k := range graph.Blocks(x.SizeOf(t.Partition)) {
		rows, dim, err := own.block(k)
		if err != nil {
			return err
		}
		v.vectors, v.dim = append(v.vectors, rows...), dim
	}
	if err := fillMissing(ctx, t, x, v); err != nil {
		return err
	}
	for i := range v.status {
		if v.status[i] == embedding.FromNeighbours {
			s.FromNeighbours++
		}
	}
	p, err := graph.PartitionNodes(ctx, t)
	if err != nil {
		return err
	}
	t.Stats = s
	return writeEmbeddings(ctx, t, p, v)
}

// fillMissing adds up the embeddings of the neighbours of nodes without text.
func fillMissing(ctx context.Context, t *work.Task, x graph.Numbering, v embedded) error {
	type want struct{ of, node int32 } // the position of a neighbour, and who wants it
	var wanted []want
	if err := graph.EachNeighbours(ctx, t.Build, t.Partition, func(i int, n graph.Neighbours) error {
		if v.status[i] == embedding.NoText {
			positions, _ := n.Nodes(true)
			for _, j := range positions {
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
		p := x.PartitionAt(int(wanted[0].of))
		from, err := openEncoded(ctx, t.Build, p)
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
			if j/graph.Block != at {
				at = j / graph.Block
				rows, _, err = from.block(at)
			}
			if k := j % graph.Block * v.dim; err == nil && k+v.dim <= len(rows) {
				numeric.Axpy(1, rows[k:k+v.dim], v.row(int(w.node)))
			} else if err == nil {
				err = from.From.Explain(sections.ErrShort)
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
	*work.Input
	status []embedding.Status
}

func openEncoded(ctx context.Context, b *work.Build, p int) (*encoded, error) {
	x, err := graph.LoadNumbering(ctx, b)
	if err != nil {
		return nil, err
	}
	from, err := b.OutputsOf(ctx, stages.Encode, p)
	if err != nil {
		return nil, err
	}
	data, err := from.ReadSection(ctx, "status", 0)
	if err == nil && len(data) != x.SizeOf(p) {
		err = from.Explain(sections.ErrShort)
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
	e.Input, err = from.OpenSections(ctx, "vectors")
	return e, err
}

// block returns the vectors of a block, and their dimension.
func (e *encoded) block(k int) (rows []float32, dim int, err error) {
	b, err := e.ReadSection(k)
	if err != nil {
		return nil, 0, err
	}
	rows = make([]float32, len(b)/4)
	sections.ReadFloats(b, rows)
	return rows, len(rows) / max(1, min(graph.Block, len(e.status)-k*graph.Block)), nil
}
