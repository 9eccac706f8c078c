package commitlog

import (
	"context"
	"errors"
	"iter"
	"maps"
	"sync"

	"giantstream/sink"
)

const (
	// tailManifests is up to how many manifests a Tail reads one by one. Behind more it looks for merged blocks.
	tailManifests = 8
	// tailPolls is how many polls that find nothing come to one look at the boundary.
	tailPolls = 16
)

// Tail reads the end of a shard's log again and again, with as few requests as that takes. Not for concurrent use.
type Tail struct {
	Store sink.Store
	Shard int
	// Known, if not nil, returns a manifest that is known to be committed, nil for any other. This process has created
	// it, say, and has looked at the boundary since.
	Known func(seq int64) *Manifest

	polls int // that found nothing since a look at the boundary, and that look
}

// SegmentsAfter yields what Segments yields from the manifest after `after` up to the newest. It may miss manifests
// that are committed meanwhile; a later call yields them. It may notice only after several calls that the boundary has
// passed `after`.
//
// Known manifests cost no request. SegmentsAfter reads the others one by one until none is left, and then the
// boundary: one request each. A call that finds no manifest costs one request.
func (t *Tail) SegmentsAfter(ctx context.Context, after int64) iter.Seq2[*Segment, error] {
	return func(yield func(*Segment, error) bool) {
		few, all, err := t.few(ctx, after)
		if err == nil && all {
			for _, m := range few {
				if !yield(m.segment(), nil) {
					return
				}
			}
			return
		}
		if err != nil && ctx.Err() != nil {
			yield(nil, err)
			return
		}
		for s, err := range Segments(ctx, t.Store, t.Shard, after, 0) {
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// few returns the manifests after `after`, and whether these are all that a reader may believe. If not, there are more
// or the log was folded.
func (t *Tail) few(ctx context.Context, after int64) (few []*Manifest, all bool, err error) {
	from := after + 1
	for m := t.known(from); m != nil; m = t.known(from) {
		few, from = append(few, m), from+1
	}
	if len(few) > 0 {
		t.polls = 1
		return few, true, nil
	}
	var prev *Manifest
	for len(few) < tailManifests {
		m, err := ReadManifest(ctx, t.Store, t.Shard, from)
		if errors.Is(err, sink.ErrNotFound) {
			break
		}
		if err == nil && prev != nil {
			err = m.follows(prev)
		}
		if err != nil {
			return nil, false, err
		}
		few, prev, from = append(few, m), m, from+1
	}
	if len(few) == 0 && t.polls%tailPolls != 0 {
		t.polls++
		return nil, true, nil // nothing is believed, so the boundary can wait
	}
	t.polls = 1
	b, err := ReadBoundary(ctx, t.Store, t.Shard)
	return few, len(few) < tailManifests && b.Seq <= after, err
}

func (t *Tail) known(seq int64) *Manifest {
	if t.Known == nil {
		return nil
	}
	return t.Known(seq)
}

// recentManifests is how many manifests of a shard Recent remembers: two blocks of the smallest size.
const recentManifests = 2 * compactionFanIn

// Recent remembers the manifests that a process has committed last.
type Recent struct {
	mu     sync.Mutex
	shards map[int]map[int64]*Manifest
}

// Add remembers a manifest that this process has created, and has looked at the boundary since.
func (r *Recent) Add(m *Manifest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shards == nil {
		r.shards = map[int]map[int64]*Manifest{}
	}
	last := r.shards[m.Shard]
	if last == nil {
		last = map[int64]*Manifest{}
		r.shards[m.Shard] = last
	}
	last[m.Seq] = m
	if len(last) > recentManifests {
		maps.DeleteFunc(last, func(seq int64, _ *Manifest) bool { return seq <= m.Seq-recentManifests })
	}
}

// LookupFor returns the function in which a shard's Tail and Compactor look for known manifests.
func (r *Recent) LookupFor(shard int) func(seq int64) *Manifest {
	return func(seq int64) *Manifest {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.shards[shard][seq]
	}
}
