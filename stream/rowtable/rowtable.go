// Package rowtable keeps a table elsewhere equal to the newest rows of a pipeline's commit log: the graph as facts, of
// which every state that readers see is a cut of the log. Features and targets are left out, since rows of several
// generations have those of several vectorizers and trees; 'giantstream export' makes them anew.
//
// A Follower reads the log and a Table is the database, which stores with the rows how far they go: a follower that was
// killed continues there. sink/iceberg has the only one so far.
package rowtable

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"giantstream/internal/ambient"
	"giantstream/internal/retry"
	"giantstream/sink"
	"giantstream/sink/rows"
	"giantstream/sink/vectordb"
	"giantstream/stream/commitlog"
)

// Table is a table of rows. What fails is tried again, unless the error is final (retry.Final).
type Table interface {
	// Open takes the table over from any other process, and returns the newest manifest of each shard that it has. All
	// are 0 with again, and where it holds the rows of the pipeline with the id continues, which is this one with
	// another number of shards: the table is filled from the beginning. Another pipeline's rows are an error that is
	// final.
	Open(ctx context.Context, pipeline, id, continues string, shards int, again bool) ([]int64, error)
	// Apply takes the rows of a shard's windows up to manifest seq, and what that manifest has consumed, nil for
	// unknown. Later rows of a node replace earlier ones. After an error the same shard comes next.
	Apply(ctx context.Context, shard int, seq int64, inputs map[string]int64,
		rows iter.Seq2[rows.Committed, error]) error
	// Serve lets readers see a table that was filled from the beginning.
	Serve(ctx context.Context) error
	// Flush stores what was applied: all of it, or what has waited for long enough.
	Flush(ctx context.Context, all bool) error
}

// Options of a Follower.
type Options struct {
	Store sink.Store // of the pipeline
	Table Table
	// Again fills the table from the beginning.
	Again bool
	// Every is the interval at which the follower reads the log.
	Every time.Duration
	// Pause is the first pause between attempts; 0 means the one of retry.Loop.
	Pause time.Duration
	// Applied, if not nil, is called when the table has all rows of a shard up to a manifest, with the number of rows
	// that were handed to it.
	Applied func(shard int, seq int64, upserts, deletes int)
	// Watch, if not nil, receives the failures of the table and of the store.
	Watch retry.Watcher
	Log   *slog.Logger
}

// Follower brings the rows of a log into a table.
type Follower struct {
	opts   Options
	shards []*shard
	// loop repeats what fails, unless the error is final.
	loop retry.Loop
}

type shard struct {
	tail commitlog.Tail
	seq  int64 // in the table
	// until is the head when the follower was opened: from there on the table is one that readers may see.
	until int64
	// merged: objects of windows were gone, so the merged blocks have their rows.
	merged bool
}

// New returns a follower; Open comes next.
func New(o Options) *Follower {
	o.Log = ambient.Log(o.Log)
	return &Follower{opts: o, loop: retry.Loop{Service: "the table of rows", Min: o.Pause, Watch: o.Watch, Log: o.Log}}
}

// Open takes the table over and finds where to go on.
func (f *Follower) Open(ctx context.Context) error {
	id, err := commitlog.LoadIdentity(ctx, f.opts.Store)
	if errors.Is(err, sink.ErrNotFound) {
		return errors.New("no pipeline has written to the store yet; 'giantstream run' does when it starts")
	}
	if err != nil {
		return err
	}
	continues, err := commitlog.Continues(ctx, f.opts.Store)
	if err != nil {
		return err
	}
	cut, err := commitlog.CurrentCut(ctx, f.opts.Store, id.Shards)
	if err != nil {
		return err
	}
	var at []int64
	err = f.loop.Do(ctx, "open the table", func(ctx context.Context) (err error) {
		at, err = f.opts.Table.Open(ctx, id.Name, id.ID, continues, id.Shards, f.opts.Again)
		return err
	})
	if err != nil {
		return err
	}
	f.shards = nil
	for n, seq := range at {
		if seq > cut[n] {
			return fmt.Errorf("%w: the table has manifest %d of shard %d, and the log ends with %d: the store was "+
				"restored from a copy. Fill the table again (--refill)", vectordb.ErrRefused, seq, n, cut[n])
		}
		tail := commitlog.Tail{Store: f.opts.Store, Shard: n}
		f.shards = append(f.shards, &shard{tail: tail, seq: seq, until: cut[n]})
	}
	return nil
}

// Run follows the log until an error that needs a person, or until ctx ends. With caughtUp it returns when all that
// was committed when the follower was opened is in the table.
func (f *Follower) Run(ctx context.Context, caughtUp bool) error {
	for served := false; ; {
		reached := true
		for _, s := range f.shards {
			err := f.loop.Do(ctx, fmt.Sprintf("bring rows of shard %d into the table", s.tail.Shard),
				func(ctx context.Context) error { return f.follow(ctx, s) })
			if err != nil {
				return err
			}
			reached = reached && s.seq >= s.until
		}
		if reached && !served {
			if err := f.loop.Do(ctx, "serve the table", f.opts.Table.Serve); err != nil {
				return err
			}
			served = true
		}
		if served && caughtUp {
			return f.flush(ctx, true)
		}
		if err := f.flush(ctx, false); err != nil {
			return err
		}
		if err := retry.Sleep(ctx, f.opts.Every); err != nil {
			return err
		}
	}
}

// Flush stores all that was applied.
func (f *Follower) Flush(ctx context.Context) error { return f.flush(ctx, true) }

func (f *Follower) flush(ctx context.Context, all bool) error {
	return f.loop.Do(ctx, "commit rows", func(ctx context.Context) error { return f.opts.Table.Flush(ctx, all) })
}

// columns are those of facts.
var columns = []string{rows.ColNodeID, rows.ColText, rows.ColClass, rows.ColLabels, rows.ColEventTime, rows.ColDeleted,
	rows.ColLinkEnds, rows.ColLinkKinds, rows.ColLinkWeights, rows.ColLinkTimes}

// follow applies what a shard has committed. It returns after some windows, so that no shard waits for another.
func (f *Follower) follow(ctx context.Context, s *shard) (err error) {
	const most = 64
	segments, n := s.tail.SegmentsAfter(ctx, s.seq), 0
	if s.merged {
		segments = commitlog.Segments(ctx, f.opts.Store, s.tail.Shard, s.seq, 0)
	}
	defer func() { s.merged = errors.Is(err, sink.ErrNotFound) }()
	for segment, err := range segments {
		if err != nil {
			return err
		}
		upserts, deletes := 0, 0
		all := func(yield func(rows.Committed, error) bool) {
			for r, err := range segment.Rows(ctx, f.opts.Store, rows.ReadOptions{Columns: columns}) {
				if r.Deleted {
					deletes++
				} else {
					upserts++
				}
				if !yield(r, err) {
					return
				}
			}
		}
		inputs, err := f.inputs(ctx, s.tail.Shard, segment)
		if err == nil {
			err = f.opts.Table.Apply(ctx, s.tail.Shard, segment.To, inputs, all)
		}
		if err != nil {
			return err
		}
		s.seq = segment.To
		if f.opts.Applied != nil {
			f.opts.Applied(s.tail.Shard, s.seq, upserts, deletes)
		}
		if n++; n == most {
			break
		}
	}
	return nil
}

// inputs returns what a segment's last manifest has consumed, nil if the manifest is gone.
func (f *Follower) inputs(ctx context.Context, shard int, s *commitlog.Segment) (map[string]int64, error) {
	if s.Next != nil {
		return s.Next, nil
	}
	m, err := commitlog.ReadCommitted(ctx, f.opts.Store, shard, s.To)
	if errors.Is(err, commitlog.ErrRemoved) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return m.Next, nil
}
