package commitlog

import (
	"context"
	"fmt"
	"iter"

	"giantstream/sink"
)

// ReadManifest reads manifest seq of a shard, and refuses an object that is not this manifest.
func ReadManifest(ctx context.Context, store sink.Store, shard int, seq int64) (*Manifest, error) {
	key := ManifestKey(shard, seq)
	data, err := sink.ReadAll(ctx, store, key)
	if err != nil {
		return nil, err
	}
	m, err := Decode(data, sink.PlaceOf(store, key))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if m.Shard != shard || m.Seq != seq {
		return nil, fmt.Errorf("%w: %s holds shard %d, sequence %d", ErrDamaged, key, m.Shard, m.Seq)
	}
	return m, nil
}

// ReadCommitted is ReadManifest for callers that act on what the manifest says. It returns ErrRemoved for a manifest
// behind the boundary, whatever lies under its number.
func ReadCommitted(ctx context.Context, store sink.Store, shard int, seq int64) (*Manifest, error) {
	m, err := ReadManifest(ctx, store, shard, seq)
	if removed := CheckCreated(ctx, store, shard, seq); removed != nil {
		return nil, removed
	}
	return m, err
}

// Manifests yields the manifests of a shard after afterSeq, in ascending order, up to the newest. Those behind the
// boundary are left out. A gap ends the sequence with ErrDamaged, and so does a manifest that was not written after
// the one before it. If the boundary passes the sequence meanwhile, it ends with ErrRemoved.
func Manifests(ctx context.Context, store sink.Store, shard int, afterSeq int64) iter.Seq2[*Manifest, error] {
	return func(yield func(*Manifest, error) bool) {
		b, err := ReadBoundary(ctx, store, shard)
		if err != nil {
			yield(nil, err)
			return
		}
		var prev *Manifest
		want := max(afterSeq, b.Seq)
		for info, err := range store.List(ctx, manifestPrefix(shard), ManifestKey(shard, want)) {
			want++
			m, err := readListed(ctx, store, shard, want, info.Key, err)
			if err == nil && prev != nil {
				err = m.follows(prev)
			}
			if err != nil {
				if removed := CheckCreated(ctx, store, shard, want); removed != nil {
					m, err = nil, removed
				}
			}
			if !yield(m, err) || err != nil {
				return
			}
			prev = m
		}
	}
}

// readListed reads manifest `want` if it is the one that a listing has yielded.
func readListed(ctx context.Context, store sink.Store, shard int, want int64, key string, err error) (*Manifest,
	error) {
	if err != nil {
		return nil, fmt.Errorf("list the commit log of shard %d: %w", shard, err)
	}
	seq, err := manifestSeq(shard, key)
	if err != nil {
		return nil, err
	}
	if seq != want {
		return nil, gap(shard, want, seq)
	}
	return ReadManifest(ctx, store, shard, seq)
}

// gap is the error for a manifest that is missing.
func gap(shard int, missing, have int64) error {
	return fmt.Errorf("%w: shard %d has manifest %d but not %d (%s)", ErrDamaged, shard, have, missing,
		ManifestKey(shard, missing))
}

// headAfter finds the newest sequence number from a manifest on that existed (0: none), up to the first gap.
func headAfter(ctx context.Context, store sink.Store, shard int, from int64) (int64, error) {
	for {
		head, err := gallop(ctx, store, shard, from)
		if err != nil {
			return 0, err
		}
		b, err := ReadBoundary(ctx, store, shard)
		if err != nil || b.Seq <= from {
			return head, err // nothing was removed of what the search has looked for
		}
		from = b.Seq + 1
	}
}

// gallop is headAfter for a manifest that is not behind the boundary, and stays so. Numbers have no gaps, so "is there
// manifest k" is monotone in k. Looking for single objects costs the same in a log of any length; a listing does not.
func gallop(ctx context.Context, store sink.Store, shard int, from int64) (int64, error) {
	low, high := from, int64(-1) // there is a manifest at low, and none at high
	for step := int64(0); high < 0 || high-low > 1; {
		probe := low + max(1, step)
		if high >= 0 {
			probe = low + (high-low)/2
		}
		there, err := sink.Exists(ctx, store, ManifestKey(shard, probe))
		switch {
		case err != nil:
			return 0, fmt.Errorf("look for the head of shard %d: %w", shard, err)
		case there:
			low, step = probe, max(1, step*2) // 1, 1, 2, 4, …: a follower mostly finds one
		default:
			high = probe
		}
	}
	return low, nil
}
