package service

import (
	"context"
	"fmt"
	"time"

	"giantstream/ingest/rekey"
	"giantstream/stream"
)

// drainPoll is how often Drain and WaitPublished look: a few small requests
// to the store per shard each time.
const drainPoll = 200 * time.Millisecond

// Drain returns once everything that was sent to the input topics before the
// call is committed to the store, on whichever workers. Until then it asks
// the shards of this process to commit as soon as they are caught up.
//
// Manifests that reach the end offsets of every topic, read after them, mean
// that nothing more can come from within: only edges make mirror records, and
// a shard flushes those before the manifest that covers the edges. Records that
// are keyed anew count as open until they are copied.
func (s *Service) Drain(ctx context.Context) error {
	s.draining.Add(1)
	defer s.draining.Add(-1)
	s.progress.Stage("ingest", 0)
	var reported int64
	return s.poll(ctx, "drain", func() (bool, error) {
		covered, open, err := s.backlog(ctx)
		s.progress.Add(covered - reported)
		reported = covered
		return open == 0, err
	})
}

// backlog returns how many input records the commit log covers, and how many
// it does not cover yet.
func (s *Service) backlog(ctx context.Context) (covered, open int64, err error) {
	heads := make([]*stream.Manifest, s.cfg.Shards)
	for p := range heads {
		if heads[p], err = s.heads.get(ctx, s.store, p); err != nil {
			return 0, 0, err
		}
	}
	// What is copied by now is below the end offsets read after it.
	if open, err = rekey.Lag(ctx, s.client, s.routes()); err != nil {
		return 0, 0, err
	}
	ends, err := s.client.EndOffsets(ctx, s.topics.Inputs()...)
	if err != nil {
		return 0, 0, err
	}
	first, err := s.client.FirstOffsets(ctx, s.topics.Inputs()...)
	if err != nil {
		return 0, 0, err
	}
	for topic, partitions := range ends {
		for p, end := range partitions {
			next := first[topic][p] // what is before it is gone: nothing to wait for
			if heads[p] != nil {
				next = max(next, heads[p].Next[topic])
			}
			covered += next - first[topic][p]
			open += max(0, end-next)
		}
	}
	return covered, open, nil
}

// WaitPublished returns once the embeddings of the current generation and of
// everything committed so far are acknowledged by the sink topic.
func (s *Service) WaitPublished(ctx context.Context) error {
	g := s.serving.number()
	s.progress.Stage("publish embeddings", 0)
	return s.poll(ctx, "wait for embeddings", func() (bool, error) {
		behind, err := s.unpublished(ctx, g)
		return behind == 0, err
	})
}

// poll asks until the answer is yes, the context ends or the service fails.
func (s *Service) poll(ctx context.Context, what string, done func() (bool, error)) error {
	tick := time.NewTicker(drainPoll)
	defer tick.Stop()
	for {
		if ok, err := done(); err != nil || ok {
			return wrap(what, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.failed:
			return s.failure()
		case <-tick.C:
		}
	}
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// unpublished counts the shards whose embeddings lag behind.
func (s *Service) unpublished(ctx context.Context, g int64) (behind int, err error) {
	for p := range s.cfg.Shards {
		head, err := s.heads.get(ctx, s.store, p)
		if err != nil {
			return 0, err
		}
		at, err := stream.LoadPublished(ctx, s.store, p)
		if err != nil {
			return 0, err
		}
		if at.Generation < g || head != nil && at.Seq < head.Seq {
			behind++
		}
	}
	return behind, nil
}
