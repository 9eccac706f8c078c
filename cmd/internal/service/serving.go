package service

import (
	"cmp"
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
	// trial is the generation that a share of the nodes or the canary topic has in place of the current one, nil for
	// none.
	trial atomic.Pointer[generation.Generation]
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
	m := s.modelOf(g, shard)
	if t := s.tried(g); t != nil && t.Doc.Canary > 0 {
		m.Canary = &publish.Canary{Model: s.modelOf(t, shard), Share: t.Doc.Canary}
	}
	return m
}

// tried returns the generation on trial beside the current one, nil for none, also if it was promoted just now.
func (s *serving) tried(current *generation.Generation) *generation.Generation {
	if t := s.trial.Load(); t != nil && t.Doc.Generation > current.Doc.Generation {
		return t
	}
	return nil
}

// canary returns what the follower of the canary topic needs: of the generation on trial, or of the current one.
func (s *serving) canary(shard int) *publish.Model {
	g := s.current.Load()
	if g == nil {
		return nil
	}
	return s.modelOf(cmp.Or(s.tried(g), g), shard)
}

func (s *serving) modelOf(g *generation.Generation, shard int) *publish.Model {
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
