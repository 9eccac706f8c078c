package build

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"giantstream/featurize/pifa"
	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/featurize/tfidf"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
	"giantstream/train/numeric"
)

func (b *build) loadVectorizer(ctx context.Context) (*tfidf.Model, error) {
	return sharedArtifact(ctx, b, Vectorizer, "vectorizer", tfidf.Read)
}

func (b *build) loadProjection(ctx context.Context) (*projection.Projection, error) {
	return sharedArtifact(ctx, b, Projection, "projection", projection.Read)
}

// projectionStats is what projection says of itself.
type projectionStats struct {
	Dim int `json:"dim"`
}

// dim is the dimension of the labels' features.
func (b *build) dim(ctx context.Context) (int, error) {
	s, err := stats[projectionStats](ctx, b, Projection, 0)
	return min(b.doc.Settings.EmbeddingDim, s.Dim), err
}

// walk calls visit with all nodes in the order of their positions, from a position that the seed draws on and
// around, until visit returns false. As positions go by a hash, every run of them is a random sample.
func (b *build) walk(ctx context.Context, seed uint64, visit func(position int, text string) bool) error {
	x, err := b.numbered(ctx)
	if err != nil {
		return err
	}
	stop := errors.New("stop")
	begin := b.begin(x, seed)
	first := x.of(begin)
	for k := range b.plan.Partitions + 1 {
		p := (first + k) % b.plan.Partitions
		err := b.texts(ctx, p, func(lo int, texts []string) error {
			for i, text := range texts {
				at := x.Base[p] + lo + i
				if k == 0 && at < begin || k == b.plan.Partitions && at >= begin {
					continue // what comes before the beginning comes last
				}
				if !visit(at, text) {
					return stop
				}
			}
			return ctx.Err()
		})
		if errors.Is(err, stop) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// begin is where a sample begins.
func (b *build) begin(x index, seed uint64) int {
	r := numeric.NewRand(seed, 'S')
	return r.IntN(x.nodes())
}

// projection fits the projection to a sample of the texts that have features. A warm start keeps the parent's.
func (t *task) projection(ctx context.Context) error {
	if warm, _, err := t.warm(ctx); err != nil || warm {
		return errors.Join(err, t.keepProjection(ctx))
	}
	v, err := t.loadVectorizer(ctx)
	if err != nil {
		return err
	}
	sample := &sparse.Matrix{Cols: v.Dim(), Start: []int64{0}}
	if err := t.walk(ctx, t.doc.Settings.Seed, func(_ int, text string) bool {
		if f := v.Transform(text, sparse.Vector{}); len(f.Index) > 0 {
			sample.Append(f)
		}
		return sample.Rows < fit.ProjectionSample
	}); err != nil {
		return err
	}
	q, err := fit.ProjectionOf(sample, t.doc.Settings, t.resources())
	if errors.Is(err, projection.ErrNoData) {
		x, xerr := t.numbered(ctx)
		return errors.Join(t.alike(x, err), xerr)
	}
	if err != nil {
		return err
	}
	t.stats = projectionStats{q.Dim()}
	return t.put(ctx, "projection", t.final(generation.ProjectionName), q.Write)
}

// keepProjection makes the parent's projection the generation's own.
func (t *task) keepProjection(ctx context.Context) error {
	q, err := artifact(ctx, t.build, Start, generation.ProjectionName, projection.Read)
	if err != nil {
		return err
	}
	t.stats = projectionStats{q.Dim()}
	return t.keepArtifact(ctx, generation.ProjectionName)
}

// vectorise finds the features of a partition's texts, and projects them.
//
//	counts     by block: the features of each text
//	projected  by block: the rows as bfloat16
func (t *task) vectorise(ctx context.Context) error {
	v, err := t.loadVectorizer(ctx)
	if err != nil {
		return err
	}
	q, err := t.loadProjection(ctx)
	if err != nil {
		return err
	}
	dim, err := t.dim(ctx)
	if err != nil {
		return err
	}
	if q, err = q.Truncate(dim); err != nil {
		return err
	}
	x, err := t.numbered(ctx)
	if err != nil {
		return err
	}
	counts, out := t.newSections(blocks(x.size(t.Partition))), t.newSections(blocks(x.size(t.Partition)))
	defer counts.close() //nolint:errcheck // temporary files
	defer out.close()    //nolint:errcheck
	var sum tfidf.NGrams
	var features sparse.Vector
	var b, record []byte
	row := make([]float32, dim)
	if err := t.texts(ctx, t.Partition, func(lo int, texts []string) error {
		for i, text := range texts {
			var n tfidf.NGrams
			features, n = v.Counts(text, features)
			sum.Total, sum.Unknown = sum.Total+n.Total, sum.Unknown+n.Unknown
			record = appendCounts(record[:0], features)
			b = append(binary.AppendUvarint(b[:0], uint64(len(record))), record...)
			if err := counts.add((lo+i)/block, b); err != nil {
				return err
			}
			q.Apply(v.Weigh(features), row)
			b = appendBF16(b[:0], row)
			if err := out.add((lo+i)/block, b); err != nil {
				return err
			}
		}
		return ctx.Err()
	}); err != nil {
		return err
	}
	t.stats = sum
	return errors.Join(t.putSections(ctx, "counts", counts), t.putSections(ctx, "projected", out))
}

// projected reads the projected texts of a partition, a block at a time.
type projected struct {
	*input
	have [][]byte
	last int
	row  []float32
	pool *sync.Pool // of blocks, which a task of pifa reads all of
}

func (b *build) projected(ctx context.Context, partition, dim int) (*projected, error) {
	from, err := b.from(ctx, Vectorise, partition)
	if err != nil {
		return nil, err
	}
	in, err := from.sections(ctx, "projected")
	if err != nil {
		return nil, err
	}
	return &projected{in, make([][]byte, in.len()), -1, make([]float32, dim), &b.blocks}, nil
}

// Close gives the memory of the blocks to those who read others.
func (p *projected) Close() error {
	for k := range p.have {
		if p.have[k] != nil {
			p.pool.Put(&p.have[k])
		}
	}
	p.have = nil
	return p.input.Close()
}

// of returns the projection of a node, by its number in the partition, until the next call. Blocks that were read stay
// in memory as they are stored, which is half as large; whoever goes along the nodes decodes each once.
func (p *projected) of(i int) ([]float32, error) {
	if i == p.last {
		return p.row, nil
	}
	if i/block >= len(p.have) {
		return nil, p.from.explain(errShort)
	}
	b := p.have[i/block]
	if b == nil {
		if spare, ok := p.pool.Get().(*[]byte); ok {
			b = *spare
		}
		var err error
		if b, err = p.sectionInto(b, i/block); err != nil {
			return nil, err
		}
		p.have[i/block] = b
	}
	each := 2 * len(p.row)
	at := i % block * each
	if at+each > len(b) {
		return nil, p.from.explain(errShort)
	}
	bf16(b[at:at+each], p.row)
	p.last = i
	return p.row, nil
}

// blockOf returns the rows of nodes lo ≤ i < hi as they are stored; lo is the first of a block, and hi its end.
func (p *projected) blockOf(lo, hi int) ([]byte, error) {
	b, err := p.section(lo / block)
	if err == nil && len(b) != 2*len(p.row)*(hi-lo) {
		err = p.from.explain(fmt.Errorf("%w: %d bytes for %d texts", errShort, len(b), hi-lo))
	}
	return b, err
}

// rowsOf is the output of pifa with the features of a partition's labels: float32, a row after the other.
func rowsOf(partition int) string { return fmt.Sprintf("rows-%05d", partition) }

// pifa adds up the features of a range of labels. Every label takes its sources in ascending order, so the sums do
// not depend on the number of ranges and partitions. It holds the range's sums in memory, and the projected texts of
// one partition.
func (t *task) pifa(ctx context.Context) error {
	dim, err := t.dim(ctx)
	if err != nil {
		return err
	}
	x, err := t.numbered(ctx)
	if err != nil {
		return err
	}
	s, err := t.linked(ctx)
	if err != nil {
		return err
	}
	weighting, err := pifa.ParseWeighting(t.doc.Settings.Weighting)
	if err != nil {
		return err
	}
	each := t.plan.Partitions / t.plan.Ranges
	first, end := t.Partition*each, (t.Partition+1)*each
	base := x.Base[first]
	sums := pifa.NewSketch(x.Base[end]-base, dim)
	switch {
	case s.Instances == 0:
	case t.plan.Spread:
		err = t.addSpread(ctx, dim, weighting, sums)
	default:
		err = t.addAll(ctx, x, dim, weighting, sums)
	}
	if err != nil {
		return err
	}
	rows := sums.Normalize()
	if s.Instances == 0 {
		// No neighbours, no PIFA: the tree is one of the texts.
		for k := range each {
			own := rows[(x.Base[first+k]-base)*dim : (x.Base[first+k+1]-base)*dim]
			if err := t.copyTexts(ctx, first+k, dim, own); err != nil {
				return err
			}
		}
	}
	for k := range each {
		lo, hi := x.Base[first+k]-base, x.Base[first+k+1]-base
		if err := t.put(ctx, rowsOf(first+k), "", func(w io.Writer) error {
			var b []byte
			for i := lo; i < hi; i++ {
				b = appendFloats(b[:0], rows[i*dim:(i+1)*dim])
				if _, err := w.Write(b); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// addAll adds the projected texts of all nodes to the sums of the range's labels that they have.
func (t *task) addAll(ctx context.Context, x index, dim int, w pifa.Weighting, sums *pifa.Sketch) error {
	each := t.plan.Partitions / t.plan.Ranges
	first := t.Partition * each
	arcs := make([]*input, each)
	for k := range arcs {
		from, err := t.from(ctx, Resolve, first+k)
		if err != nil {
			return err
		}
		if arcs[k], err = from.sections(ctx, "arcs"); err != nil {
			return err
		}
		defer arcs[k].Close() // all are needed to the end
	}
	for p := range t.plan.Partitions {
		if err := t.addSources(ctx, p, dim, w, func(add func(arcs []byte, base int) error) error {
			for k := range arcs {
				b, err := arcs[k].section(p)
				if err == nil {
					err = add(b, x.Base[first+k]-x.Base[first])
				}
				if err != nil {
					return err
				}
			}
			return ctx.Err()
		}, sums); err != nil {
			return err
		}
	}
	return nil
}

// addSources adds the projected texts of a partition to the labels that its nodes have. each calls add with the arcs
// into a partition of labels, and the number of its first label among the sums.
func (t *task) addSources(ctx context.Context, p, dim int, w pifa.Weighting,
	each func(add func(arcs []byte, base int) error) error, sums *pifa.Sketch) error {
	sources, err := t.projected(ctx, p, dim)
	if err != nil {
		return err
	}
	defer sources.Close()
	degree, err := t.degrees(ctx, p)
	if err != nil {
		return err
	}
	return each(func(arcs []byte, base int) error {
		for ; len(arcs) >= arcBytes; arcs = arcs[arcBytes:] {
			source, target := arc(arcs)
			row, err := sources.of(source)
			if err != nil {
				return err
			}
			sums.AddWeighted(base+target, w.WeightOf(degree(source)), row)
		}
		return nil
	})
}

// arc returns the ends of the first link of arcs, each by its number in its partition.
func arc(arcs []byte) (source, target int) {
	return int(binary.LittleEndian.Uint32(arcs)), int(binary.LittleEndian.Uint32(arcs[4:]))
}

// degrees returns the number of known neighbours of a partition's nodes.
func (t *task) degrees(ctx context.Context, p int) (of func(node int) int, err error) {
	links, err := t.from(ctx, Link, p)
	if err != nil {
		return nil, err
	}
	degrees, err := links.section(ctx, "degrees", 0)
	return func(node int) int { return int(binary.LittleEndian.Uint32(degrees[4*node:])) }, err
}

// copyTexts writes the normalized projections of a partition's texts.
func (t *task) copyTexts(ctx context.Context, p, dim int, out []float32) error {
	texts, err := t.projected(ctx, p, dim)
	if err != nil {
		return err
	}
	defer texts.Close()
	for i := range len(out) / dim {
		row, err := texts.of(i)
		if err != nil {
			return err
		}
		copy(out[i*dim:], row)
	}
	numeric.NormalizeRows(out, dim)
	return nil
}
