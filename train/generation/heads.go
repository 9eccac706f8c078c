package generation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"giantstream/sink/embedding"
	"giantstream/train"
	"giantstream/train/heads"
)

// HeadRow is how one head does on a generation's embeddings, a report per seed.
type HeadRow struct {
	Head heads.Kind      `json:"head"`
	Runs []*heads.Report `json:"runs"`
}

// Over returns the spread of a figure over the runs.
func (r HeadRow) Over(figure func(*heads.Report) float64) Spread {
	values := make([]float64, len(r.Runs))
	for k, run := range r.Runs {
		values[k] = figure(run)
	}
	return spread(values)
}

// Nodes are what a split of nodes is made from, by position.
type Nodes struct {
	IDs, Classes []string
	Times        []time.Time
}

// Heads trains downstream heads on the embeddings of a ready generation and the
// graph of its cut, which source must show, once per seed. split
// chooses the nodes to train on and to test. Nothing is stored.
func (b *Builder) Heads(ctx context.Context, source Source, doc *Doc, kinds []heads.Kind, seeds []uint64,
	split func(n Nodes, seed uint64) (heads.Split, error)) (_ []HeadRow, err error) {
	if doc.Status != Ready {
		return nil, fmt.Errorf("generation %d is %s; its embeddings come with its end", doc.Generation, doc.Status)
	}
	clock := newStageClock(b.Progress, b.Now)
	clock.Stage("read the cut", 0)
	corpus, err := loadCorpus(ctx, source, doc.Settings.MaxDegree, b.share(textShare), clock)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, corpus.close()) }()
	d, err := b.headData(ctx, doc, corpus, clock)
	if err != nil {
		return nil, err
	}
	nodes := Nodes{IDs: corpus.graph.IDs, Classes: d.Classes, Times: make([]time.Time, len(corpus.meta))}
	for i, m := range corpus.meta {
		nodes.Times[i] = time.UnixMicro(m.eventTime)
	}
	rows := make([]HeadRow, len(kinds))
	for _, seed := range seeds {
		s, err := split(nodes, seed)
		if err != nil {
			return nil, err
		}
		for i, kind := range kinds {
			r, err := heads.Train(ctx, kind, d, s, heads.Options{Seed: seed, Workers: b.Workers}, clock)
			if err != nil {
				return nil, err
			}
			rows[i].Head, rows[i].Runs = kind, append(rows[i].Runs, r)
		}
	}
	clock.end()
	return rows, nil
}

// headData reads the generation's embeddings beside the graph. A node without
// embedding (it had no place in the cut) has zeros and no class.
func (b *Builder) headData(ctx context.Context, doc *Doc, c *corpus, p train.Progress) (heads.Data, error) {
	g := c.graph
	d := heads.Data{Dim: doc.Encoder.Dim, Neighbours: g.Neighbours, Classes: slices.Clone(g.Classes)}
	d.Vectors = make([]float32, g.Len()*d.Dim)
	found := make([]bool, g.Len())
	p.Stage("read embeddings", int64(g.Len()))
	for _, part := range doc.Embeddings {
		for r, err := range embedding.ReadParquet(ctx, b.Store, part.Key) {
			if err != nil {
				return d, err
			}
			if len(r.Vector) != d.Dim {
				return d, fmt.Errorf("%s: node %q has %d numbers, generation %d has %d", part.Key, r.NodeID, len(r.Vector), doc.Generation, d.Dim)
			}
			if i, ok := slices.BinarySearch(g.IDs, r.NodeID); ok {
				copy(d.Vectors[i*d.Dim:(i+1)*d.Dim], r.Vector)
				found[i] = true
			}
			p.Add(1)
		}
	}
	for i, ok := range found {
		if !ok {
			d.Classes[i] = ""
		}
	}
	return d, nil
}
