package service

import (
	"context"
	"fmt"
	"time"

	"giantstream/cmd/internal/service/ingesting"
	"giantstream/ingest/client"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
)

// Drain returns once everything that was sent to the input topics before the call is committed
// (ingesting.Ingest.Drain).
func (s *Service) Drain(ctx context.Context) error {
	ctx, stop := s.whileAlive(ctx)
	defer stop()
	return s.ingest.Drain(ctx)
}

// UpToDate returns once a generation covers everything committed (refreshing.Refresh.UpToDate).
func (s *Service) UpToDate(ctx context.Context) (doc *generation.Doc, built bool, err error) {
	ctx, stop := s.whileAlive(ctx)
	defer stop()
	return s.refresh.UpToDate(ctx)
}

// publishedPoll is the interval at which WaitPublished looks, and DeadLetters asks again.
const publishedPoll = 200 * time.Millisecond

// WaitPublished returns once the embeddings of the current generation and of everything committed
// before the call are acknowledged by the sink topic. If the generation's embeddings turn out to be damaged, it
// first brings the embeddings up to date again, with a new generation.
func (s *Service) WaitPublished(ctx context.Context) error {
	ctx, stop := s.whileAlive(ctx)
	defer stop()
	defer s.publish.Hurry()()
	heads, err := s.publish.Heads.NewestOfAll(ctx)
	if err != nil {
		return fmt.Errorf("wait for embeddings: %w", err)
	}
	s.live.Progress.Stage("publish embeddings", 0)
	defer s.live.Progress.Done()
	err = client.PollThrough(ctx, publishedPoll, s.log, func() (bool, error) {
		g := s.served.Number() // another one may be built meanwhile
		if g > 0 && s.refresh.Damaged() >= g {
			if _, _, err := s.refresh.UpToDate(ctx); err != nil {
				return false, err
			}
			if g = s.served.Number(); s.refresh.Damaged() >= g {
				return false, fmt.Errorf("generation %d is damaged, and no other could be built in its place", g)
			}
		}
		behind, err := s.publish.Behind(ctx, g, heads)
		if err == nil && behind > 0 {
			err = s.publish.Blocked()
		}
		return behind == 0, err
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("wait for embeddings: %w", err)
	}
	return err
}

// Because returns why this process has built its last generation, "" if it has built none.
func (s *Service) Because() string { return s.refresh.Because() }

// Refused returns the generation that the quality gate has refused after the one that is served, nil
// for none.
func (s *Service) Refused() *generation.Doc { return s.refresh.Refused() }

// Lost returns the losses that the newest manifests name (ingesting.Ingest.Lost).
func (s *Service) Lost(ctx context.Context) ([]commitlog.ShardLost, error) { return s.ingest.Lost(ctx) }

// Outcomes returns what became of the records of each input since the start (ingesting.Ingest.Outcomes).
func (s *Service) Outcomes(ctx context.Context) ([]ingesting.InputOutcomes, error) {
	return s.ingest.Outcomes(ctx)
}

// Shrunk says by how much the graph is smaller than before (ingesting.Ingest.Shrunk).
func (s *Service) Shrunk(ctx context.Context) (string, error) { return s.ingest.Shrunk(ctx) }

// Reload reads the configuration again and changes what it says (settings.Settings.Reload).
func (s *Service) Reload(by string) error { return s.settings.Reload(by) }

// Unhealthy implements answering.Health.
func (s *Service) Unhealthy() string {
	select {
	case <-s.failed:
		return fmt.Sprintf("stopped: %v", s.failure())
	default:
		return s.ingest.Unhealthy()
	}
}

// Unready implements answering.Health.
func (s *Service) Unready(ctx context.Context) string {
	for _, why := range []func() string{s.Unhealthy, s.ingest.Unready, s.refresh.Unready, s.answer.Unready} {
		if why := why(); why != "" {
			return why
		}
	}
	return s.ingest.Behind(ctx)
}
