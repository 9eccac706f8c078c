package main

import (
	"context"
	"fmt"
	"iter"
	"strconv"

	"giantstream/cmd/bench/internal/stage"
	"giantstream/cmd/internal/wiring"
	"giantstream/sink"
	"giantstream/train/generation"
	"giantstream/train/generation/build"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/generationtest"
)

// cutSource is the graph at a cut as a build reads it.
type cutSource struct {
	number int64 // of the last manifest
	each   iter.Seq[generation.Row]
}

// Cut implements generation.Source.
func (s cutSource) Cut() map[int]int64 { return map[int]int64{0: s.number} }

// Hash implements generation.Source.
func (s cutSource) Hash() string { return strconv.FormatInt(s.number, 10) }

// Rows implements generation.Source.
func (s cutSource) Rows(context.Context) iter.Seq2[generation.Row, error] {
	return func(yield func(generation.Row, error) bool) {
		for r := range s.each {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// built is a generation, and the processor seconds that its build took.
type built struct {
	*generation.Generation
	CPU float64
}

// buildNext builds the next generation in one of the modes, and opens it. The caller closes its encoder.
func (b *bench) buildNext(ctx context.Context, store sink.Store, s cutSource, mode string) (*built, error) {
	request := wiring.RequestOf(&b.config)
	request.Shards = 1
	switch mode {
	case "kept", "scratch":
	case "turned":
		request.Afresh = true
	default:
		return nil, fmt.Errorf("mode %q: use kept, turned or scratch", mode)
	}
	w := &build.Worker{Means: work.Means{Store: store, Resources: wiring.ResourcesOf(&b.config, nil, nil, b.log),
		Log: func(context.Context, map[int]int64) (work.Log, error) { return generationtest.LogOf(s), nil }}}
	began := stage.CPUSeconds()
	doc, err := w.Build(ctx, request, stages.Finish)
	if err != nil {
		return nil, err
	}
	used := stage.CPUSeconds() - began
	for _, s := range doc.Stages {
		b.log.Info("stage", "generation", doc.Generation, "name", s.Name, "seconds", s.Seconds)
	}
	g, err := generation.Open(ctx, store, doc, nil)
	return &built{g, used}, err
}

// encode returns the vectors of texts, a row each.
func (g *built) encode(texts []string) ([]float32, error) {
	vectors := make([]float32, len(texts)*g.Encoder.Dim())
	return vectors, g.Encoder.Encode(texts, vectors)
}
