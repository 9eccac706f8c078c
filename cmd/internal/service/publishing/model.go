package publishing

import (
	"giantstream/stream/publish"
	"giantstream/train/generation"
)

// model returns what a shard's follower needs of the current generation.
func (p *Publish) model(shard int) *publish.Model {
	return p.modelOf(p.Served.Current, shard)
}

// canaryModel returns what a shard's follower of the canary topic needs: of the canary, or of the current generation.
func (p *Publish) canaryModel(shard int) *publish.Model {
	return p.modelOf(p.Served.CanaryOrCurrent, shard)
}

func (p *Publish) modelOf(served func() *generation.Generation, shard int) *publish.Model {
	asOf, passedOver := p.Served.LastLook()
	g := served()
	if g == nil {
		return nil
	}
	m := &publish.Model{
		Generation: g.Doc.Generation,
		Space:      g.Doc.SpaceBefore(),
		Cut:        g.Doc.Cut[shard],
		Dim:        g.Encoder.Dim(),
		Encode:     g.Encode,
		Format:     p.Format.LimitTo(g.Doc.Settings.Stored),
		Attributes: p.Attributes,
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
