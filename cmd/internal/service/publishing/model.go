package publishing

import (
	"giantstream/cmd/internal/wiring"
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

func (p *Publish) modelOf(which func() *generation.Generation, shard int) *publish.Model {
	return wiring.ModelOf(p.Served, which, shard, p.Format, p.Attributes)
}
