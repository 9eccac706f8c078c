package service

import (
	"context"
	"sync"

	"giantstream/sink"
	"giantstream/stream"
)

// heads remembers the newest manifest seen of each shard, so that polling
// costs one small request per shard and not a walk over its log.
type heads struct {
	mu   sync.Mutex
	seen map[int]*stream.Manifest
}

// committed notes a manifest that a shard of this process has committed.
func (h *heads) committed(m *stream.Manifest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note(m)
}

func (h *heads) note(m *stream.Manifest) {
	if h.seen == nil {
		h.seen = map[int]*stream.Manifest{}
	}
	if old := h.seen[m.Shard]; old == nil || old.Seq < m.Seq {
		h.seen[m.Shard] = m
	}
}

// get returns a shard's newest manifest, nil if it has none.
func (h *heads) get(ctx context.Context, store sink.Store, shard int) (*stream.Manifest, error) {
	h.mu.Lock()
	last := h.seen[shard]
	h.mu.Unlock()
	if last == nil {
		m, err := stream.Head(ctx, store, shard)
		if m != nil && err == nil {
			h.committed(m)
		}
		return m, err
	}
	for m, err := range stream.Manifests(ctx, store, shard, last.Seq) {
		if err != nil {
			return nil, err
		}
		last = m
		h.committed(m)
	}
	return last, nil
}
