package publishing

import (
	"context"
	"errors"
	"time"

	"giantstream/ingest/owner"
	"giantstream/stream/commitlog"
)

// ownerEvery is how often a process that publishes asks whether another pipeline has taken its topics.
const ownerEvery = 5 * time.Second

// Claim makes the pipeline the owner of its topics of embeddings; owner.ErrForeign if another one is. A process that
// publishes calls it before any follower runs.
func (p *Publish) Claim(ctx context.Context) error {
	p.guards = map[string]*owner.Guard{}
	for _, o := range p.outlets() {
		p.guards[o.topic] = &owner.Guard{Client: p.Groups.Client, Topic: o.topic, Mine: p.Pipeline, Every: ownerEvery,
			Log: p.Log}
		if _, err := p.sinkTopic(ctx, o.topic); err != nil {
			return err
		}
	}
	return nil
}

// checkOwner ends the process if a topic that it publishes to belongs to another pipeline.
func (p *Publish) checkOwner(ctx context.Context, topic commitlog.SinkTopic) error {
	guard := p.guards[topic.Name]
	if guard == nil { // this process does not publish
		return nil
	}
	err := guard.Check(ctx, topic.ID)
	if errors.Is(err, owner.ErrForeign) {
		p.Fail(err)
	}
	return err
}
