// Package heads follows the commit logs of all shards: the newest manifest of each, and what this process has committed
// last, by which followers are woken.
package heads

import (
	"context"
	"errors"
	"sync"

	"giantstream/sink"
	"giantstream/stream/commitlog"
)

// Heads are the newest manifests of a pipeline's shards, and the number of rows committed since a cut. Each manifest is
// read once, so that polling costs one small request per shard and not a walk over its log. Heads are safe for
// concurrent use.
type Heads struct {
	Store  sink.Store
	Shards int

	// recent are manifests of this process, which need not be read from the store.
	recent commitlog.Recent
	mu     sync.Mutex
	shards map[int]*shardLog
	wakeups
}

// shardLog is what is known about one shard's log.
type shardLog struct {
	mu   sync.Mutex
	head *commitlog.Manifest
	// rows were committed by the manifests after cut, up to counted.
	rows, cut, counted int64
}

func (h *Heads) log(shard int) *shardLog {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shards == nil {
		h.shards = map[int]*shardLog{}
	}
	l := h.shards[shard]
	if l == nil {
		l = &shardLog{}
		h.shards[shard] = l
	}
	return l
}

// Committed notes a manifest that a shard of this process has committed, and wakes the shard's followers.
func (h *Heads) Committed(m *commitlog.Manifest) {
	h.recent.Add(m)
	defer h.wake(m.Shard)
	l := h.log(m.Shard)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.head == nil || l.head.Seq < m.Seq {
		l.head = m
	}
}

// Known returns a function that returns a manifest of a shard that this process has committed not long ago, nil for
// any other.
func (h *Heads) Known(shard int) func(seq int64) *commitlog.Manifest {
	return h.recent.LookupFor(shard)
}

// NewestOfAll returns the newest manifest of each shard, nil for none.
func (h *Heads) NewestOfAll(ctx context.Context) ([]*commitlog.Manifest, error) {
	all := make([]*commitlog.Manifest, h.Shards)
	for shard := range all {
		var err error
		if all[shard], err = h.Newest(ctx, shard); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Newest returns a shard's newest manifest, nil if it has none.
func (h *Heads) Newest(ctx context.Context, shard int) (*commitlog.Manifest, error) {
	l := h.log(shard)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.head == nil {
		m, err := commitlog.Head(ctx, h.Store, shard)
		if err == nil {
			l.head = m
		}
		return m, err
	}
	for {
		m, err := commitlog.Next(ctx, h.Store, shard, l.head.Seq)
		if errors.Is(err, commitlog.ErrRemoved) { // this process has not looked for long
			m, err = commitlog.Head(ctx, h.Store, shard)
			if m != nil && m.Seq <= l.head.Seq {
				return l.head, err
			}
		}
		if err != nil || m == nil {
			return l.head, err
		}
		l.head = m
	}
}

// RowsSince returns how many rows that say something new a shard has committed after manifest cut. It reads the
// manifests after cut only where they do not say how many rows were committed before them.
func (h *Heads) RowsSince(ctx context.Context, shard int, cut int64) (int64, error) {
	l := h.log(shard)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut != cut || l.counted < cut {
		l.rows, l.cut, l.counted = 0, cut, cut
	}
	for l.head == nil || l.counted < l.head.Seq {
		m, err := commitlog.Next(ctx, h.Store, shard, l.counted)
		if errors.Is(err, commitlog.ErrRemoved) && l.head != nil && l.head.Committed != nil {
			// The cut is of a generation that is gone, or of none: everything counts.
			l.rows, l.counted = *l.head.Committed, l.head.Seq
			break
		}
		if err != nil || m == nil {
			return l.rows, err
		}
		if l.rows += m.Changes(); m.Committed != nil && l.head != nil && l.head.Committed != nil {
			l.rows += *l.head.Committed - *m.Committed
			m = l.head
		}
		l.counted = m.Seq
	}
	return l.rows, nil
}
