package service

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"giantstream/ingest/client"
	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"
)

// DeadLetterCount counts the letters on the dead-letter topic: those that are open, and apart from them those that
// people have dismissed.
type DeadLetterCount struct {
	Total     int64            `json:"total"`
	ByCode    map[string]int64 `json:"by_code,omitempty"`
	Dismissed int64            `json:"dismissed,omitempty"`
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

// DeadLetters counts the pipeline's dead letters that are open.
func (s *Service) DeadLetters(ctx context.Context) (count DeadLetterCount, err error) {
	err = client.PollThrough(ctx, publishedPoll, s.log, func() (bool, error) {
		count, err = CountDeadLetters(ctx, s.client, s.topics.DeadLetters)
		return true, err
	})
	return count, err
}

// CountDeadLetters counts the letters on a topic that are open or dismissed.
func CountDeadLetters(ctx context.Context, c *client.Client, topic string) (DeadLetterCount, error) {
	count := DeadLetterCount{ByCode: map[string]int64{}}
	for l, err := range deadletter.List(ctx, c, topic, deadletter.Filter{All: true}) {
		switch {
		case err != nil:
			return count, fmt.Errorf("read the dead letters: %w", err)
		case !l.Dismissed.IsZero():
			count.Dismissed++
			continue
		case !l.Open():
			continue
		}
		count.Total++
		count.ByCode[string(l.Code)]++
	}
	return count, nil
}
