package publishing

import (
	"context"

	"giantstream/stream/commitlog"
	"giantstream/stream/publish"
)

// Behind counts the shards whose embeddings lag behind these manifests, or are not in the topic that they
// are to be in. g is the generation that the embeddings topic is to have.
func (p *Publish) Behind(ctx context.Context, g int64, heads []*commitlog.Manifest) (behind int, err error) {
	for _, o := range p.outlets() {
		if o.cursor == commitlog.Canary {
			g = 0
			if model := o.model(0); model != nil {
				g = model.Generation
			}
		}
		n, err := p.behindOn(ctx, &o, g, heads)
		if err != nil {
			return 0, err
		}
		behind += n
	}
	return behind, nil
}

func (p *Publish) behindOn(ctx context.Context, o *outlet, g int64, heads []*commitlog.Manifest) (behind int,
	err error) {
	topic, err := p.sinkTopic(ctx, o.topic)
	if err != nil {
		return 0, err
	}
	for shard, head := range heads {
		at, err := o.cursor.Load(ctx, p.Store, shard)
		if err != nil {
			return 0, err
		}
		elsewhere := g > 0 && (at.Topic == "" || at.Gone(topic) != "")
		if elsewhere || at.Generation != g || head != nil && at.Seq < head.Seq || p.repeats(o.model(shard), at) {
			behind++
		}
	}
	return behind, nil
}

// repeats says whether this process publishes current embeddings of a shard again.
func (p *Publish) repeats(model *publish.Model, at commitlog.Published) bool {
	return p.Embeds && model != nil && model.Repeats(at)
}
