package service

import (
	"context"
	"time"

	"giantstream/config"
	"giantstream/ingest/decode"
	"giantstream/ingest/rekey"
)

// keyedMessageBytes is the largest record that a keyed topic has to take: a
// value at its limit, and room for key and headers.
func keyedMessageBytes(cfg *config.Config) int {
	return max(1<<20, int(cfg.Ingest.Limits.RecordBytes)) + 128<<10
}

// routes are the topics that are keyed anew, and where to; nil if none are.
func (s *Service) routes() []rekey.Route {
	t := s.topics
	if !t.Rekeyed() {
		return nil
	}
	mapping, limits := s.feeds.Mapping, s.feeds.DecoderLimits
	return []rekey.Route{
		{From: t.SourceNodes, To: t.Nodes, Group: s.cfg.Group() + "-rekey-nodes", Translator: s.feeds.Translators[t.Nodes],
			Decoder: func() (*decode.Decoder, error) { return decode.Nodes(mapping.Nodes, limits(t.Nodes), 1) }},
		{From: t.SourceEdges, To: t.Edges, Group: s.cfg.Group() + "-rekey-edges", Translator: s.feeds.Translators[t.Edges],
			Decoder: func() (*decode.Decoder, error) { return decode.Edges(mapping.Edges, limits(t.Edges), 1) }},
	}
}

// rekey copies the source topics until ctx ends.
func (s *Service) rekey(ctx context.Context) error {
	return rekey.Run(ctx, rekey.Options{Client: s.client, Routes: s.routes(), SessionTimeout: s.cfg.Kafka.SessionTimeout,
		RecordBytes: s.feeds.Limits.RecordBytes, DeadLetters: s.topics.DeadLetters, Clock: time.Now, Log: s.log})
}
