package service

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"giantstream/config"
	"giantstream/ingest/broker"
	"giantstream/ingest/client"
	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"
)

// DeadLetterCount counts the letters on the dead-letter topic.
type DeadLetterCount struct {
	Total  int64            `json:"total"`
	ByCode map[string]int64 `json:"by_code,omitempty"`
}

// String lists the codes, most frequent first.
func (c DeadLetterCount) String() string {
	codes := slices.Sorted(maps.Keys(c.ByCode))
	slices.SortStableFunc(codes, func(a, b string) int { return int(c.ByCode[b] - c.ByCode[a]) })
	parts := make([]string, len(codes))
	for i, code := range codes {
		parts[i] = fmt.Sprintf("%d %s (%s)", c.ByCode[code], code, decode.Code(code).Explain())
	}
	return strings.Join(parts, ", ")
}

// DeadLetters counts the pipeline's dead letters.
func (s *Service) DeadLetters(ctx context.Context) (DeadLetterCount, error) {
	count := DeadLetterCount{ByCode: map[string]int64{}}
	for l, err := range deadletter.List(ctx, s.client, s.topics.DeadLetters, deadletter.Filter{}) {
		if err != nil {
			return count, fmt.Errorf("read the dead letters: %w", err)
		}
		count.Total++
		count.ByCode[string(l.Code)]++
	}
	return count, nil
}

// Attach connects to the pipeline's cluster for a command that looks or
// repairs. The embedded broker is started for as long as the command runs,
// which needs that no other process has it. Call the returned function when done.
func Attach(ctx context.Context, cfg *config.Config) (*client.Client, func() error, error) {
	if !cfg.Kafka.Embedded() {
		c, err := Connect(ctx, cfg)
		return c, func() error { c.Close(); return nil }, err
	}
	b, err := broker.Start(broker.Options{Dir: cfg.Kafka.DataDir})
	if err != nil {
		return nil, nil, err
	}
	opts, err := clientOptions(cfg)
	if err == nil {
		opts.Brokers = b.Addrs()
		var c *client.Client
		if c, err = client.New(opts); err == nil {
			return c, func() error { c.Close(); return b.Close() }, nil
		}
	}
	_ = b.Close() // the first error is the one to report
	return nil, nil, err
}
