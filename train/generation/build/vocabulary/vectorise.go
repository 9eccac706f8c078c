package vocabulary

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"giantstream/featurize/sparse"
	"giantstream/featurize/tfidf"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
)

// Vectorise finds the features of a partition's texts, and projects them.
//
//	counts     by block: the features of each text
//	projected  by block: the rows as bfloat16
func Vectorise(ctx context.Context, t *work.Task) error {
	v, err := LoadVectorizer(ctx, t.Build)
	if err != nil {
		return err
	}
	q, err := LoadProjection(ctx, t.Build)
	if err != nil {
		return err
	}
	dim, err := FeatureDim(ctx, t.Build)
	if err != nil {
		return err
	}
	if q, err = q.Truncate(dim); err != nil {
		return err
	}
	x, err := graph.LoadNumbering(ctx, t.Build)
	if err != nil {
		return err
	}
	counts, out := t.NewSections(graph.Blocks(x.SizeOf(t.Partition))),
		t.NewSections(graph.Blocks(x.SizeOf(t.Partition)))
	defer counts.Close() //nolint:errcheck // temporary files
	defer out.Close()    //nolint:errcheck
	var sum tfidf.NGrams
	var features sparse.Vector
	var b, record []byte
	row := make([]float32, dim)
	if err := graph.EachTextBlock(ctx, t.Build, t.Partition, func(lo int, texts []string) error {
		for i, text := range texts {
			var n tfidf.NGrams
			features, n = v.Counts(text, features)
			sum.Total, sum.Unknown = sum.Total+n.Total, sum.Unknown+n.Unknown
			record = appendCounts(record[:0], features)
			b = append(binary.AppendUvarint(b[:0], uint64(len(record))), record...)
			if err := counts.Add((lo+i)/graph.Block, b); err != nil {
				return err
			}
			q.Apply(v.Weigh(features), row)
			b = sections.AppendBF16(b[:0], row)
			if err := out.Add((lo+i)/graph.Block, b); err != nil {
				return err
			}
		}
		return ctx.Err()
	}); err != nil {
		return err
	}
	t.Stats = sum
	return errors.Join(t.PutSections(ctx, "counts", counts), t.PutSections(ctx, "projected", out))
}

// ProjectedTexts reads the projected texts of a partition, a block at a time.
type ProjectedTexts struct {
	*work.Input
	have [][]byte
	last int
	row  []float32
	pool *sync.Pool // of blocks, which a task of pifa reads all of
}

// OpenProjected opens the projected texts of a partition, of dim numbers each. Close them after use.
func OpenProjected(ctx context.Context, b *work.Build, partition, dim int) (*ProjectedTexts, error) {
	from, err := b.OutputsOf(ctx, stages.Vectorise, partition)
	if err != nil {
		return nil, err
	}
	in, err := from.OpenSections(ctx, "projected")
	if err != nil {
		return nil, err
	}
	return &ProjectedTexts{in, make([][]byte, in.Len()), -1, make([]float32, dim), &b.BlockBuffers}, nil
}

// Close gives the memory of the blocks to those who read others.
func (p *ProjectedTexts) Close() error {
	for k := range p.have {
		if p.have[k] != nil {
			p.pool.Put(&p.have[k])
		}
	}
	p.have = nil
	return p.Input.Close()
}

// RowOf returns the projection of a node, by its number in the partition, until the next call. Blocks that were read
// stay in memory as they are stored, which is half as large. A caller that goes along the nodes decodes each once.
func (p *ProjectedTexts) RowOf(i int) ([]float32, error) {
	if i == p.last {
		return p.row, nil
	}
	if i/graph.Block >= len(p.have) {
		return nil, p.From.Explain(sections.ErrShort)
	}
	b := p.have[i/graph.Block]
	if b == nil {
		if spare, ok := p.pool.Get().(*[]byte); ok {
			b = *spare
		}
		var err error
		if b, err = p.ReadSectionInto(b, i/graph.Block); err != nil {
			return nil, err
		}
		p.have[i/graph.Block] = b
	}
	each := 2 * len(p.row)
	at := i % graph.Block * each
	if at+each > len(b) {
		return nil, p.From.Explain(sections.ErrShort)
	}
	sections.ReadBF16(b[at:at+each], p.row)
	p.last = i
	return p.row, nil
}

// BlockRows returns the rows of nodes lo ≤ i < hi as they are stored; lo is the first of a block, and hi its end.
func (p *ProjectedTexts) BlockRows(lo, hi int) ([]byte, error) {
	b, err := p.ReadSection(lo / graph.Block)
	if err == nil && len(b) != 2*len(p.row)*(hi-lo) {
		err = p.From.Explain(fmt.Errorf("%w: %d bytes for %d texts", sections.ErrShort, len(b), hi-lo))
	}
	return b, err
}
