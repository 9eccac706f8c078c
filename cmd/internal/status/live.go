package status

import (
	"context"
	"time"

	"giantstream/cmd/internal/service"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
)

// lettersEvery is how often a running service counts the open dead letters for its page, which reads their whole
// topic.
const lettersEvery = time.Minute

// Live returns what 'giantstream status' shows, as a running service reads it for its page: over the
// connection that it has, and without looking at every object. It is called once at a time.
func Live(cfg *config.Config) func(context.Context, *service.Service) (any, error) {
	var counted time.Time
	var letters *service.DeadLetterCount
	return func(ctx context.Context, s *service.Service) (any, error) {
		st, err := Read(ctx, s.Store(), s.Identity())
		if err != nil {
			return nil, err
		}
		st.CountRead(cfg)
		readable, ends, err := wiring.EndOffsetsOf(ctx, s.Client(), cfg)
		st.Lag = LagOf(readable, ends, err, st.Shards)
		if time.Since(counted) > lettersEvery {
			ctx, cancel := context.WithTimeout(ctx, lettersTimeout)
			defer cancel()
			if count, err := s.DeadLetters(ctx); err == nil {
				letters = &count
			}
			counted = time.Now()
		}
		st.DeadLetters = letters
		return st, nil
	}
}
