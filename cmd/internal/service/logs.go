package service

import (
	"context"
	"errors"
	"sync"

	"giantstream/sink"
	"giantstream/stream/commitlog"
)

// commitLogs follows the shards' commit logs: the newest manifest of each, and the number of rows
// committed since a cut. Each manifest is read once, so that polling costs one small request per
// shard and not a walk over its log.
type commitLogs struct {
	mu     sync.Mutex
	shards map[int]*shardLog
}

// shardLog is what is known about one shard's log.
type shardLog struct {
	mu   sync.Mutex
	head *commitlog.Manifest
	// rows were committed by the manifests after cut, up to counted.
	rows, cut, counted int64
}

func (h *commitLogs) log(shard int) *shardLog {
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

// committed notes a manifest that a shard of this process has committed.
func (h *commitLogs) committed(m *commitlog.Manifest) {
	l := h.log(m.Shard)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.head == nil || l.head.Seq < m.Seq {
		l.head = m
	}
}

// get returns a shard's newest manifest, nil if it has none.
func (h *commitLogs) get(ctx context.Context, store sink.Store, shard int) (*commitlog.Manifest, error) {
	l := h.log(shard)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.head == nil {
		m, err := commitlog.Head(ctx, store, shard)
		if err == nil {
			l.head = m
		}
		return m, err
	}
	for {
		m, err := commitlog.Next(ctx, store, shard, l.head.Seq)
		if errors.Is(err, commitlog.ErrRemoved) { // this process has not looked for long
			m, err = commitlog.Head(ctx, store, shard)
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

// rowsSince returns how many rows a shard has committed after manifest cut. It reads the manifests after cut
// only where they do not say how many rows were committed before them.
func (h *commitLogs) rowsSince(ctx context.Context, store sink.Store, shard int, cut int64) (int64, error) {
	l := h.log(shard)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut != cut || l.counted < cut {
		l.rows, l.cut, l.counted = 0, cut, cut
	}
	for l.head == nil || l.counted < l.head.Seq {
		m, err := commitlog.Next(ctx, store, shard, l.counted)
		if errors.Is(err, commitlog.ErrRemoved) && l.head != nil && l.head.Committed != nil {
			// The cut is of a generation that is gone, or of none: everything counts.
			l.rows, l.counted = *l.head.Committed, l.head.Seq
			break
		}
		if err != nil || m == nil {
			return l.rows, err
		}
		if l.rows += m.Rows; m.Committed != nil && l.head != nil && l.head.Committed != nil {
			l.rows += *l.head.Committed - *m.Committed
			m = l.head
		}
		l.counted = m.Seq
	}
	return l.rows, nil
}
