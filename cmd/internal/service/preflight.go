package service

import (
	"context"

	"giantstream/ingest/preflight"
)

// preflight looks at the input topics before they are consumed.
func (s *Service) preflight(ctx context.Context) error {
	warnings, err := preflight.Check(ctx, preflight.Options{Client: s.client, Topics: s.topics,
		Mapping: s.feeds.Mapping, Limits: s.feeds.Limits, Translators: s.feeds.Translators, Shards: s.cfg.Shards})
	for _, w := range warnings {
		s.log.Warn(w)
	}
	return err
}
