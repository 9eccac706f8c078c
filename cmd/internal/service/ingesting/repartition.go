package ingesting

import (
	"context"
	"fmt"
	"time"

	"giantstream/ingest/decode"
	"giantstream/ingest/repartition"
)

// routes are the topics that are repartitioned, and their targets; nil if there are none.
func (in *Ingest) routes() []repartition.Route {
	t := in.Topics
	if !t.Repartitioned() {
		return nil
	}
	mapping, limits := in.Feeds.Mapping, in.Feeds.DecoderLimits
	return []repartition.Route{
		{From: t.SourceNodes, To: t.Nodes,
			Group: in.copyGroup("nodes", t.SourceNodes), Epoch: in.sources[t.SourceNodes].Epoch,
			Translator: in.Feeds.Translators[t.Nodes],
			Decoder:    func() (*decode.Decoder, error) { return decode.Nodes(mapping.Nodes, limits(t.Nodes), 1) }},
		{From: t.SourceEdges, To: t.Edges,
			Group: in.copyGroup("edges", t.SourceEdges), Epoch: in.sources[t.SourceEdges].Epoch,
			Translator: in.Feeds.Translators[t.Edges],
			Decoder:    func() (*decode.Decoder, error) { return decode.Edges(mapping.Edges, limits(t.Edges), 1) }},
	}
}

// copyGroup is the consumer group that copies a topic. A topic that was created again has another
// one, because what the group has committed are offsets of the old topic.
func (in *Ingest) copyGroup(what, topic string) string {
	name := in.Groups.Group + "-rekey-" + what
	if epoch := in.sources[topic].Epoch; epoch > 0 {
		name += fmt.Sprint("-", epoch)
	}
	return name
}

// repartition copies the source topics until ctx ends.
func (in *Ingest) repartition(ctx context.Context) error {
	return in.Groups.Explain(ctx, in.copyGroup("nodes", in.Topics.SourceNodes), repartition.Run(ctx, repartition.Options{
		Client: in.Groups.Client, Protocol: in.Groups.Protocol(true), Routes: in.routes(),
		SessionTimeout: in.Groups.SessionTimeout,
		RecordBytes:    in.Feeds.Limits.RecordBytes, DeadLetters: in.Topics.DeadLetters, Clock: time.Now, Log: in.Log,
		OnLost: in.loseSource}))
}
