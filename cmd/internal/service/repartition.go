package service

import (
	"context"
	"fmt"
	"time"

	"giantstream/ingest/decode"
	"giantstream/ingest/repartition"
)

// routes are the topics that are repartitioned, and their targets; nil if there are none.
func (s *Service) routes() []repartition.Route {
	t := s.topics
	if !t.Repartitioned() {
		return nil
	}
	mapping, limits := s.feeds.Mapping, s.feeds.DecoderLimits
	return []repartition.Route{
		{From: t.SourceNodes, To: t.Nodes,
			Group: s.copyGroup("nodes", t.SourceNodes), Epoch: s.sources[t.SourceNodes].Epoch,
			Translator: s.feeds.Translators[t.Nodes],
			Decoder:    func() (*decode.Decoder, error) { return decode.Nodes(mapping.Nodes, limits(t.Nodes), 1) }},
		{From: t.SourceEdges, To: t.Edges,
			Group: s.copyGroup("edges", t.SourceEdges), Epoch: s.sources[t.SourceEdges].Epoch,
			Translator: s.feeds.Translators[t.Edges],
			Decoder:    func() (*decode.Decoder, error) { return decode.Edges(mapping.Edges, limits(t.Edges), 1) }},
	}
}

// copyGroup is the consumer group that copies a topic. A topic that was created again has another
// one, because what the group has committed are offsets of the old topic.
func (s *Service) copyGroup(what, topic string) string {
	name := s.cfg.Group() + "-rekey-" + what
	if epoch := s.sources[topic].Epoch; epoch > 0 {
		name += fmt.Sprint("-", epoch)
	}
	return name
}

// repartition copies the source topics until ctx ends.
func (s *Service) repartition(ctx context.Context) error {
	return s.explainGroup(ctx, s.copyGroup("nodes", s.topics.SourceNodes), repartition.Run(ctx, repartition.Options{
		Client: s.client, Protocol: AllRoles().protocol(s.id.ID), Routes: s.routes(),
		SessionTimeout: s.cfg.Kafka.SessionTimeout,
		RecordBytes:    s.feeds.Limits.RecordBytes, DeadLetters: s.topics.DeadLetters, Clock: time.Now, Log: s.log,
		OnLost: s.loseSource}))
}
