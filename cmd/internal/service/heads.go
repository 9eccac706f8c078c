package service

import (
	"context"
	"sync"

	"giantstream/sink"
	"giantstream/stream"
)

// heads follows the shards' commit logs: the newest manifest of each, and how
// many rows were committed since a cut. Each manifest is read once, so that
// polling costs one small request per shard and not a walk over its log.
type heads struct {
	mu     sync.Mutex
	shards map[int]*shardLog
}

// shardLog is what is known of one shard's log.
type shardLog struct {
	mu   sync.Mutex
	head *stream.Manifest
	// rows were committed by the manifests after cut, up to counted.
	rows, cut, counted int64
}

func (h *heads) log(shard int) *shardLog {
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
func (h *heads) committed(m *stream.Manifest) {
	l := h.log(m.Shard)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.head == nil || l.head.Seq < m.Seq {
		l.head = m
	}
}

// get returns a shard's newest manifest, nil if it has none.
func (h *heads) get(ctx context.Context, store sink.Store, shard int) (*stream.Manifest, error) {
	l := h.log(shard)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.head == nil {
		m, err := stream.Head(ctx, store, shard)
		if err == nil {
			l.head = m
		}
		return m, err
	}
	for m, err := range stream.Manifests(ctx, store, shard, l.head.Seq) {
		if err != nil {
			return nil, err
		}
		l.head = m
	}
	return l.head, nil
}

// rowsSince returns how many rows a shard has committed after manifest cut.
func (h *heads) rowsSince(ctx context.Context, store sink.Store, shard int, cut int64) (int64, error) {
	l := h.log(shard)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut != cut || l.counted < cut {
		l.rows, l.cut, l.counted = 0, cut, cut
	}
	for m, err := range stream.Manifests(ctx, store, shard, l.counted) {
		if err != nil {
			return 0, err
		}
		l.rows += m.Rows
		l.counted = m.Seq
	}
	return l.rows, nil
}
