package export

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"

	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
	"giantstream/stream/replay"
)

// source is where the rows of an export come from.
type source struct {
	// rows yields those of a shard in ascending order of node id, without features.
	rows func(ctx context.Context, shard int) iter.Seq2[commitlog.Row, error]
	// vectors yields the rows of vectors, in ascending order of node and input.
	vectors func(ctx context.Context, shard int) iter.Seq2[commitlog.VectorsRow, error]
	// orders yields the rows of orders, in ascending order of input and id.
	orders func(ctx context.Context, shard int) iter.Seq2[commitlog.OrderRow, error]
	// placed: the rows know their manifests.
	placed bool
	close  func() error
}

func nothing() error { return nil }

// source opens where the rows come from.
func (e *run) source(ctx context.Context) (_ *source, err error) {
	// Orders that have expired by the cut are gone for every event time.
	if e.horizon, err = e.cut.OrderHorizon(ctx, e.Store); err != nil {
		return nil, err
	}
	switch {
	case e.AsOf.IsZero():
		return e.fromLog(commitlog.Forever), nil
	case e.doc.From == FromLog:
		e.Progress.Stage("look for later changes", int64(e.shards))
		for p := range e.shards {
			_, later, err := e.cut.Latest(ctx, e.Store, p, e.AsOf.UnixMicro())
			if err != nil {
				return nil, err
			}
			e.doc.Uncertain += later
			e.Progress.Add(1)
		}
		return e.fromLog(e.AsOf.UnixMicro()), nil
	}
	return e.fromTopics(ctx)
}

func (e *run) fromLog(until int64) *source {
	return &source{placed: true, close: nothing,
		rows: func(ctx context.Context, shard int) iter.Seq2[commitlog.Row, error] {
			return e.cut.RowsUntil(ctx, e.Store, shard, until)
		},
		vectors: func(ctx context.Context, shard int) iter.Seq2[commitlog.VectorsRow, error] {
			return e.cut.VectorsUntil(ctx, e.Store, shard, until)
		},
		orders: func(ctx context.Context, shard int) iter.Seq2[commitlog.OrderRow, error] {
			return e.cut.OrdersUntil(ctx, e.Store, shard, e.horizon, until)
		}}
}

// ErrTopics: the topics do not hold every record that an event time needs.
var ErrTopics = errors.New("the topics do not have every record any more")

// fromTopics replays the records up to the event time.
func (e *run) fromTopics(ctx context.Context) (_ *source, err error) {
	if former, err := commitlog.FormerShards(ctx, e.Store); err != nil {
		return nil, err
	} else if len(former) > 0 {
		return nil, fmt.Errorf("%w: this pipeline had another number of shards before (%v), so records lie in other "+
			"partitions than they would now; use --from log", ErrTopics, former)
	}
	spans, total, err := e.spans(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(e.Dir, "giantstream-export-")
	if err != nil {
		return nil, err
	}
	remove := func() error { return os.RemoveAll(dir) }
	defer func() {
		if err != nil {
			err = errors.Join(err, remove())
		}
	}()
	e.Progress.Stage("replay the topics", total)
	g, err := replay.Run(ctx, replay.Options{Shards: e.shards, Undirected: e.Topics.Undirected, Dir: dir,
		Log: e.Options.Log, Of: func(id string) int { return e.Topics.Partition([]byte(id), e.shards) }},
		func(ctx context.Context, shard int, each func(mutation.Mutation) error) error {
			return e.readSpans(ctx, shard, spans[shard], each)
		})
	if err != nil {
		return nil, err
	}
	return &source{close: remove,
		rows: func(ctx context.Context, shard int) iter.Seq2[commitlog.Row, error] {
			return g.Cut.RowsUntil(ctx, g.Store, shard, commitlog.Forever)
		},
		vectors: func(ctx context.Context, shard int) iter.Seq2[commitlog.VectorsRow, error] {
			return g.Cut.NewestVectors(ctx, g.Store, shard)
		},
		orders: func(ctx context.Context, shard int) iter.Seq2[commitlog.OrderRow, error] {
			return g.Cut.NewestOrders(ctx, g.Store, shard, e.horizon)
		}}, nil
}

// readSpans hands out what a shard's records up to the event time state.
func (e *run) readSpans(ctx context.Context, shard int, spans []span,
	each func(mutation.Mutation) error) (failed error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	until := e.AsOf.UnixMicro()
	for _, s := range spans {
		_, refused, err := e.Topics.Range(ctx, s.topic, shard, s.from, s.to, func(m mutation.Mutation) {
			e.Progress.Add(1)
			if failed != nil || m.Version.EventTime > until {
				return
			}
			if failed = each(m); failed != nil {
				cancel()
			}
		})
		if e.doc.Refused += refused; failed != nil {
			return failed
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// span is a stretch of a topic's partition.
type span struct {
	topic    string
	from, to int64
}

// spans returns what the manifests of the cut have consumed, by shard, if the topics still have all of it.
func (e *run) spans(ctx context.Context) (spans [][]span, total int64, err error) {
	topics := e.Topics.Inputs
	first, err := e.Topics.FirstOffsets(ctx, topics...)
	if err != nil {
		return nil, 0, err
	}
	ends, err := e.Topics.EndOffsets(ctx, topics...)
	if err != nil {
		return nil, 0, err
	}
	spans = make([][]span, e.shards)
	for p := range e.shards {
		if e.cut[p] == 0 {
			continue
		}
		m, err := commitlog.ReadCommitted(ctx, e.Store, p, e.cut[p])
		if err != nil {
			return nil, 0, fmt.Errorf("offsets of manifest %d of shard %d: %w", e.cut[p], p, err)
		}
		for _, topic := range topics {
			next, consumed := m.Next[topic]
			if !consumed {
				continue
			}
			s := span{topic, m.Inputs[topic].First, next}
			if err := s.check(p, m, first[topic], ends[topic]); err != nil {
				return nil, 0, err
			}
			spans[p] = append(spans[p], s)
			total += s.to - s.from
		}
	}
	return spans, total, nil
}

// check returns ErrTopics if the topic does not have the span any more.
func (s span) check(shard int, m *commitlog.Manifest, first, ends []int64) error {
	why := ""
	for _, l := range m.Lost {
		if l.Topic == s.topic {
			why = fmt.Sprintf("the pipeline itself has lost %s", l)
		}
	}
	switch {
	case m.Inputs[s.topic].Base != 0:
		why = "it was created again, and its former records are gone"
	case shard >= len(ends):
		why = fmt.Sprintf("it has %d partitions", len(ends))
	case first[shard] > s.from:
		why = fmt.Sprintf("its offsets %d to %d were deleted", s.from, first[shard]-1)
	case ends[shard] < s.to:
		why = fmt.Sprintf("it ends at offset %d, and %d was consumed", ends[shard], s.to-1)
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("%w: topic %s, partition %d: %s. Topics with cleanup.policy=delete, retention.ms=-1 and "+
		"retention.bytes=-1 keep all; --from log exports what the commit log knows", ErrTopics, s.topic, shard, why)
}
