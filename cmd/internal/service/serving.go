package service

import (
	"sync/atomic"

	"giantstream/sink/embedding"
	"giantstream/sink/rows"
	"giantstream/stream/publish"
	"giantstream/train/generation"
)

// serving holds the current generation for the shards, which need it for the features and targets
// of rows, and for the followers, which encode with it. Generations are switched by storing one
// pointer: a row is built with one generation or the next.
type serving struct {
	current atomic.Pointer[generation.Generation]
	// asked is the format of vectors that the configuration wants published.
	asked embedding.Format
}

// Featurize implements shard.Featurizer.
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
		Space:      g.Doc.SpaceBefore(),
		Cut:        g.Doc.Cut[shard],
		Dim:        g.Encoder.Dim(),
		Encode:     g.Encoder.Encode,
		Format:     s.asked.Within(g.Doc.Settings.Stored),
	}
	for _, p := range g.Doc.Embeddings {
		if p.Shard == shard {
			m.Parts = append(m.Parts, p.Ref())
		}
	}
	return m
}
