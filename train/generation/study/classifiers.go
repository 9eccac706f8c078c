package study

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"giantstream/internal/ambient"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/train"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
	"giantstream/train/generation/heads"
)

// HeadRow is how one head does on a generation's embeddings, a report per seed.
type HeadRow struct {
	Head heads.Kind      `json:"head"`
	Runs []*heads.Report `json:"runs"`
}

// SpreadOf returns the spread of a figure over the runs.
func (r HeadRow) SpreadOf(figure func(*heads.Report) float64) Spread {
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

// Classify trains downstream classifiers ("heads") on the embeddings of a ready generation and the
// graph of its cut, which source must show, once per seed. split chooses the nodes to train on and
// to test.
func Classify(ctx context.Context, r fit.Resources, store sink.Store, source generation.Source, doc *generation.Doc,
	kinds []heads.Kind, seeds []uint64, split func(n Nodes, seed uint64) (heads.Split,
		error)) (_ []HeadRow, err error) {
	if doc.Status != generation.Ready {
		return nil, fmt.Errorf("generation %d is %s; its embeddings come with its end", doc.Generation, doc.Status)
	}
	r.Progress = ambient.OrDiscard(r.Progress)
	corpus, err := generation.ReadCut(ctx, source, doc.Settings.MaxDegree, r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, corpus.Close()) }()
	d, err := headData(ctx, store, doc, corpus.Graph, r.Progress)
	if err != nil {
		return nil, err
	}
	nodes := Nodes{IDs: corpus.Graph.IDs, Classes: d.Classes, Times: corpus.Times()}
	rows := make([]HeadRow, len(kinds))
	for _, seed := range seeds {
		s, err := split(nodes, seed)
		if err != nil {
			return nil, err
		}
		for i, kind := range kinds {
			report, err := heads.Train(ctx, kind, d, s, heads.Options{Seed: seed, Workers: r.Workers}, r.Progress)
			if err != nil {
				return nil, err
			}
			rows[i].Head, rows[i].Runs = kind, append(rows[i].Runs, report)
		}
	}
	return rows, nil
}

// headData reads the generation's embeddings beside the graph. A node without embedding (it has no
// text, or had no place in the cut) has zeros and no class.
func headData(ctx context.Context, store sink.Store, doc *generation.Doc, g *train.Graph,
	p ambient.Progress) (heads.Data, error) {
	d := heads.Data{Dim: doc.StoredDim(), Neighbours: g.Neighbours, Classes: slices.Clone(g.Classes)}
	d.Vectors = make([]float32, g.Len()*d.Dim)
	found := make([]bool, g.Len())
	p.Stage("read embeddings", int64(g.Len()))
	for _, part := range doc.Embeddings {
		for r, err := range embedding.ReadParquet(ctx, store, part.Ref()) {
			if err != nil {
				return d, err
			}
			p.Add(1)
			if r.Status == embedding.NoText {
				continue
			}
			if len(r.Vector) != d.Dim {
				return d, fmt.Errorf("%s: node %q has %d numbers, generation %d has %d", part.Key, r.NodeID,
					len(r.Vector), doc.Generation, d.Dim)
			}
			if i, ok := slices.BinarySearch(g.IDs, r.NodeID); ok {
				copy(d.Vectors[i*d.Dim:(i+1)*d.Dim], r.Vector)
				found[i] = true
			}
		}
	}
	for i, ok := range found {
		if !ok {
			d.Classes[i] = ""
		}
	}
	return d, nil
}
