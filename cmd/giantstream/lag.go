package main

import (
	"context"
	"fmt"

	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/service"
)

// lags are how many records each shard's manifests do not cover, or why that
// is not known.
type lags struct {
	Shards []int64 `json:"shards,omitempty"`
	Error  string  `json:"error,omitempty"`
}

// readLag asks the brokers where the topics end. That they are away is
// nothing that keeps a command from showing what the store has; nil means that
// there is nobody to ask.
func readLag(ctx context.Context, in *pipeline, next func(shard int) map[string]int64) *lags {
	ends, err := service.EndOffsets(ctx, in.cfg)
	switch {
	case err != nil:
		return &lags{Error: err.Error()}
	case ends == nil:
		return nil
	}
	l := &lags{Shards: make([]int64, in.id.Shards)}
	for topic, partitions := range ends {
		for p := range min(len(partitions), len(l.Shards)) {
			l.Shards[p] += max(0, partitions[p]-next(p)[topic])
		}
	}
	return l
}

// of prints one shard's lag.
func (l *lags) of(shard int) string {
	if l == nil || l.Error != "" {
		return "-"
	}
	return console.Count(l.Shards[shard])
}

// note explains why no lag is shown, "" if it is.
func (l *lags) note() string {
	if l == nil || l.Error == "" {
		return ""
	}
	return fmt.Sprintf("lag unknown: %s\n", l.Error)
}
