package service

import (
	"context"
	"fmt"
	"slices"
	"time"

	"giantstream/ingest/repartition"
	"giantstream/stream/commitlog"
	"giantstream/stream/publish"
	"giantstream/stream/shard"
)

// drainPoll is the interval at which Drain and WaitPublished look. Each look costs a few small
// requests to the store per shard.
const drainPoll = 200 * time.Millisecond

// Drain returns once everything that was sent to the input topics before the call is committed, by
// any worker. Until then the shards of this process commit as soon as they have caught up. The end
// offsets are read after the manifests. When the manifests reach them, the pipeline itself sends
// nothing more: only edges make mirror records, and a shard flushes the mirror records before it
// creates the manifest that covers the edges. Records of repartitioned topics count as open until
// they are copied.
func (s *Service) Drain(ctx context.Context) error {
	s.finishing.Store(true)
	s.draining.Add(1)
	defer s.draining.Add(-1)
	s.progress.Stage("ingest", 0)
	defer s.live.Progress.Done()
	var reported, held int64
	err := s.poll(ctx, "drain", func() (bool, error) {
		b, err := s.backlog(ctx)
		done := max(reported, b.covered)
		if s.load { // nothing is committed before everything is read
			done = max(done, s.metrics.feed.Records.Load())
		}
		s.progress.Add(done - reported)
		reported, held = done, b.held
		return b.open == 0, err
	})
	if err == nil && held > 0 {
		s.log.Warn("records that follow the beginning of an open transaction are not read before it ends; "+
			"run again then", "offsets", held)
	}
	return err
}

// backlog is how many input records there are.
type backlog struct {
	covered int64 // by the commit log
	open    int64 // not yet
	held    int64 // back by open transactions, and in neither of the two
}

// backlog compares the commit log with the input topics.
func (s *Service) backlog(ctx context.Context) (b backlog, err error) {
	heads := make([]*commitlog.Manifest, s.cfg.Shards)
	for p := range heads {
		if heads[p], err = s.logs.get(ctx, s.store, p); err != nil {
			return b, err
		}
	}
	if err = s.checkSources(ctx); err != nil {
		return b, err
	}
	// What is copied by now is below the end offsets read after it.
	if b.open, err = repartition.Lag(ctx, s.client, s.routes()); err != nil {
		return b, err
	}
	ends, err := s.client.EndOffsets(ctx, s.topics.Inputs()...)
	if err != nil {
		return b, err
	}
	logEnds, err := s.client.LogEndOffsets(ctx, s.topics.Inputs()...)
	if err != nil {
		return b, err
	}
	first, err := s.client.FirstOffsets(ctx, s.topics.Inputs()...)
	if err != nil {
		return b, err
	}
	if why := s.strayed(first, ends); why != "" {
		return b, fmt.Errorf("%w: %s", shard.ErrPartitions, why)
	}
	ids, err := s.client.Identify(ctx, s.topics.Inputs()...)
	if err != nil {
		return b, err
	}
	for _, head := range heads {
		if s.streams(head) {
			b.open += s.accepted.pending(head)
		}
	}
	for topic, partitions := range ends {
		for p, end := range partitions {
			logEnd := end
			if p < len(logEnds[topic]) {
				logEnd = max(end, logEnds[topic][p])
			}
			c, o := coverage(heads[p], topic, ids[topic].ID, first[topic][p], end, logEnd)
			b.covered, b.open, b.held = b.covered+c, b.open+o, b.held+logEnd-end
		}
	}
	return b, nil
}

// streams reports whether this process will write the next manifest of a shard, as far as it knows.
func (s *Service) streams(head *commitlog.Manifest) bool {
	if head == nil || !s.roles.Stream {
		return false
	}
	here := s.watches.all()
	return len(here) == 0 || slices.ContainsFunc(here, func(w watchState) bool { return w.shard == head.Shard })
}

// coverage returns how many records of a partition with the offsets [first, end) the head covers,
// and how many it does not. A head that was read from another topic covers none of them. One that
// stands beyond the end of the log was read from another topic, too, whatever its id: what is open is
// then at least 1, until its shard has found out. From end to logEnd, transactions are open.
func coverage(head *commitlog.Manifest, topic, id string, first, end, logEnd int64) (covered, open int64) {
	next := first // earlier records are deleted
	if head != nil {
		in := head.Inputs[topic]
		at := head.Next[topic] - in.Base
		if in.ID != "" && id != "" && in.ID != id || at > logEnd {
			return 0, max(1, end-first)
		}
		next = max(next, at)
	}
	return next - first, max(0, end-next)
}

// WaitPublished returns once the embeddings of the current generation and of everything committed
// so far are acknowledged by the sink topic. If the generation's embeddings turn out to be damaged, it first
// brings the embeddings up to date again, with a new generation.
func (s *Service) WaitPublished(ctx context.Context) error {
	s.awaited.Add(1)
	defer s.awaited.Add(-1)
	s.wake.all()
	g := s.serving.number()
	s.progress.Stage("publish embeddings", 0)
	defer s.live.Progress.Done()
	return s.poll(ctx, "wait for embeddings", func() (bool, error) {
		if g > 0 && s.damaged.Load() >= g {
			if _, _, err := s.UpToDate(ctx); err != nil {
				return false, err
			}
			if g = s.serving.number(); s.damaged.Load() >= g {
				return false, fmt.Errorf("generation %d is damaged, and no other could be built in its place", g)
			}
		}
		behind, err := s.unpublished(ctx, g)
		if err == nil && behind > 0 {
			err = s.blocked.take()
		}
		return behind == 0, err
	})
}

// poll calls done until it returns true, the context ends or the service fails.
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

// unpublished counts the shards whose embeddings lag behind, or are not in the topic that they are
// to be in. g is the generation that the embeddings topic is to have.
func (s *Service) unpublished(ctx context.Context, g int64) (behind int, err error) {
	for _, o := range s.outlets() {
		if o.cursor == commitlog.Canary {
			g = 0
			if model := o.model(0); model != nil {
				g = model.Generation
			}
		}
		n, err := s.unpublishedOn(ctx, &o, g)
		if err != nil {
			return 0, err
		}
		behind += n
	}
	return behind, nil
}

func (s *Service) unpublishedOn(ctx context.Context, o *outlet, g int64) (behind int, err error) {
	topic, err := s.sinkTopic(ctx, o.topic)
	if err != nil {
		return 0, err
	}
	for p := range s.cfg.Shards {
		head, err := s.logs.get(ctx, s.store, p)
		if err != nil {
			return 0, err
		}
		at, err := o.cursor.Load(ctx, s.store, p)
		if err != nil {
			return 0, err
		}
		elsewhere := g > 0 && (at.Topic == "" || at.Gone(topic) != "")
		if elsewhere || at.Generation != g || head != nil && at.Seq < head.Seq || s.reformats(o.model(p), at) {
			behind++
		}
	}
	return behind, nil
}

// reformats says whether this process publishes current embeddings of a shard again: in another format, or because a
// share of the nodes is to have another generation.
func (s *Service) reformats(model *publish.Model, at commitlog.Published) bool {
	return s.roles.Embed && model != nil && (model.Reformats(at) || model.Recasts(at))
}
