package service

import (
	"sync/atomic"

	"giantstream/sink/rows"
	"giantstream/stream/publish"
	"giantstream/train/generation"
)

// serving holds the current generation and hands it to the shards (features
// and targets of rows) and the followers (embeddings). A switch is one store
// of a pointer: every window is built with one generation or the next.
type serving struct {
	current atomic.Pointer[generation.Generation]
}

// Featurize implements stream.Featurizer.
func (s *serving) Featurize(row *rows.Row) error {
	if g := s.current.Load(); g != nil {
		return g.Featurize(row)
	}
	return nil
}

// number returns the current generation's number, 0 when there is none.
func (s *serving) number() int64 {
	if g := s.current.Load(); g != nil {
		return g.Doc.Generation
	}
	return 0
}

// model returns what a shard's follower needs of the current generation.
func (s *serving) model(shard int) *publish.Model {
	g := s.current.Load()
	if g == nil {
		return nil
	}
	m := &publish.Model{
		Generation: g.Doc.Generation,
		Cut:        g.Doc.Cut[shard],
		Dim:        g.Encoder.Dim(),
		Encode:     g.Encoder.Encode,
	}
	for _, p := range g.Doc.Embeddings {
		if p.Shard == shard {
			m.Parts = append(m.Parts, p.Key)
		}
	}
	return m
}
