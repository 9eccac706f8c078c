package commitlog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"giantstream/sink"
)

// SessionsOptions configure RemoveSessions.
type SessionsOptions struct {
	Store sink.Store
	// Keep returns the oldest cut of a shard that must stay readable, as in Compactor.Remove.
	Keep  func(ctx context.Context, shard int) (int64, error)
	Grace time.Duration    // as in CompactorOptions
	Clock func() time.Time // time.Now if nil
}

// RemoveSessions removes from the logs of all sessions what no shard needs any more: row objects that were merged, in
// every shard that has rows in them, for longer than the grace; those that no manifest names; and group manifests whose
// every number lies behind the boundary of its shard. The newest entry of a log stays: it may be the seal that keeps a
// late worker from going on.
//
// It may run at any time, in any process, beside workers and other calls.
func RemoveSessions(ctx context.Context, o SessionsOptions) (removed Removed, err error) {
	r := sessionRemoval{opts: o, removed: &removed, shards: map[int]*shardLimits{}}
	for info, err := range o.Store.List(ctx, sessionsPrefix, "") {
		if err != nil {
			return removed, fmt.Errorf("list sessions: %w", err)
		}
		session, _, _ := strings.Cut(strings.TrimPrefix(info.Key, sessionsPrefix), "/")
		if session != r.session {
			if err := r.end(ctx); err != nil {
				return removed, err
			}
			r.session, r.manifests, r.rows = session, nil, map[int64][]sink.Info{}
		}
		if _, number, ok := parseGroupKey(info.Key); ok {
			r.manifests = append(r.manifests, numbered{number, info})
		} else if _, number, ok := parseGroupRowKey(info.Key); ok {
			r.rows[number] = append(r.rows[number], info)
		}
	}
	return removed, r.end(ctx)
}

// numbered is a listed group manifest.
type numbered struct {
	number int64
	info   sink.Info
}

// sessionRemoval is a call of RemoveSessions.
type sessionRemoval struct {
	opts    SessionsOptions
	removed *Removed
	shards  map[int]*shardLimits
	// The session that is being listed, and what it has.
	session   string
	manifests []numbered
	rows      map[int64][]sink.Info
}

// shardLimits is what may be removed of a shard.
type shardLimits struct {
	boundary, keep int64
	blocks         *Compactor
}

// end removes what it may of the session that was listed.
func (r *sessionRemoval) end(ctx context.Context) error {
	if len(r.manifests) == 0 {
		return nil
	}
	for _, m := range r.manifests[:len(r.manifests)-1] {
		more, err := r.manifest(ctx, m)
		if err != nil {
			return fmt.Errorf("remove what session %s has left: %w", r.session, err)
		}
		if !more {
			return nil
		}
	}
	// A seal ends the log: what was written for it and later numbers will never be named.
	newest := r.manifests[len(r.manifests)-1].number
	g, err := readGroup(ctx, r.opts.Store, r.session, newest)
	if err != nil || !g.Sealed {
		return ignoreNotFound(err)
	}
	for number, objects := range r.rows {
		if number < newest {
			continue
		}
		for _, info := range objects {
			if err := r.removed.object(ctx, r.opts.Store, info); err != nil {
				return err
			}
		}
	}
	return nil
}

func ignoreNotFound(err error) error {
	if errors.Is(err, sink.ErrNotFound) {
		return nil
	}
	return err
}

// manifest removes what it may of one group manifest. It returns false if nothing of later ones can be removed yet.
func (r *sessionRemoval) manifest(ctx context.Context, m numbered) (more bool, err error) {
	g, err := readGroup(ctx, r.opts.Store, r.session, m.number)
	if err != nil {
		return true, ignoreNotFound(err)
	}
	if g.Sealed { // there are later ones: a late worker has sealed a number that was removed
		return true, r.removed.object(ctx, r.opts.Store, m.info)
	}
	behind := true
	needed := map[string]bool{} // by object: a shard needs its rows
	waiting := false            // for a merge, or the grace after it
	for _, part := range g.Parts() {
		limits, err := r.limits(ctx, part.Shard)
		if err != nil {
			return false, err
		}
		behind = behind && part.Seq <= limits.boundary
		if len(part.Objects) == 0 {
			continue
		}
		gone, later, err := limits.merged(ctx, part.Seq)
		if err != nil {
			return false, err
		}
		waiting = waiting || later
		for _, o := range part.Objects {
			needed[o.Key] = needed[o.Key] || !gone
		}
	}
	for _, info := range r.rows[m.number] {
		if needed[info.Key] {
			continue
		}
		if err := r.removed.object(ctx, r.opts.Store, info); err != nil {
			return false, err
		}
	}
	if behind && !waiting {
		return true, r.removed.object(ctx, r.opts.Store, m.info)
	}
	return !waiting, nil
}

// merged reports whether the row objects of a manifest may be removed as far as the shard is concerned, and if not,
// whether that may come. It does not come for blocks that are skipped.
func (l *shardLimits) merged(ctx context.Context, seq int64) (gone, later bool, err error) {
	b := block{1, blockStart(1, seq)}
	state, err := l.blocks.block(ctx, b)
	if err != nil {
		return false, false, err
	}
	switch {
	case !state.created.IsZero() && !state.merged:
		return false, false, nil
	case !state.merged, b.from+blockSize(1)-1 > l.keep:
		return false, true, nil
	}
	gone = l.blocks.opts.Clock().Sub(state.created) > l.blocks.opts.Grace
	return gone, !gone, nil
}

func (r *sessionRemoval) limits(ctx context.Context, shard int) (*shardLimits, error) {
	if l := r.shards[shard]; l != nil {
		return l, nil
	}
	keep, err := r.opts.Keep(ctx, shard)
	if err != nil {
		return nil, err
	}
	b, err := ReadBoundary(ctx, r.opts.Store, shard)
	if err != nil {
		return nil, err
	}
	l := &shardLimits{b.Seq, keep, NewCompactor(CompactorOptions{Shard: shard, Store: r.opts.Store,
		Grace: r.opts.Grace, Clock: r.opts.Clock})}
	r.shards[shard] = l
	return l, nil
}
