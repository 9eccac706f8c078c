package wiring

import (
	"giantstream/sink/embedding"
	"giantstream/stream/publish"
	"giantstream/train/generation"
)

// ModelOf returns what a follower of a shard needs of the generation that `which` returns, nil if it returns none. The
// embeddings are published in a format, as far as the generation has it, with attributes beside them.
func ModelOf(served *generation.Served, which func() *generation.Generation, shard int, format embedding.Format,
	attributes []string) *publish.Model {
	asOf, passedOver := served.LastLook()
	g := which()
	if g == nil {
		return nil
	}
	m := &publish.Model{
		Generation: g.Doc.Generation,
		Space:      g.Doc.SpaceBefore(),
		Cut:        g.Doc.Cut[shard],
		Dim:        g.Encoder.Dim(),
		Encode:     g.Encode,
		Format:     format.LimitTo(g.Doc.Settings.Stored),
		Attributes: attributes,
		PassedOver: passedOver,
		AsOf:       asOf,
	}
	if g.Following().TakesVectors() {
		m.Follow = func() publish.Encoder { return g.Following() }
	}
	for _, part := range g.Doc.Embeddings {
		if part.Shard == shard {
			m.Parts = append(m.Parts, part.Ref())
		}
	}
	return m
}
