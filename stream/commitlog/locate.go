package commitlog

import (
	"context"
	"errors"
	"fmt"

	"giantstream/sink"
)

// shardLog finds the manifests of a shard by their numbers. A manifest lies in the shard's own log or, after a
// delegation, in the log of a session. It remembers where it was, so that reading on costs one request for a manifest.
// Not for concurrent use.
//
// What it finds is to be believed only after a look at the boundary, as ever.
type shardLog struct {
	store sink.Store
	shard int
	// entry is the newest entry of the shard's own log that was met, and at the newest number from there on that was
	// found: entry's own, or one in the session that entry delegates the shard to.
	entry *Manifest
	at    int64
	// over is a number behind the end of the shard's line in the session that entry delegates it to, 0 for none met.
	over int64
}

// read returns manifest seq, or sink.ErrNotFound.
func (l *shardLog) read(ctx context.Context, seq int64) (*Manifest, error) {
	ended := l.entry != nil && l.entry.Session == nil
	if l.entry != nil && l.entry.Session != nil && seq > l.entry.Seq {
		m, end, err := l.inSession(ctx, seq)
		if !errors.Is(err, sink.ErrNotFound) || !end && l.at == seq-1 {
			return m, err
		}
		ended = end
	}
	m, err := l.own(ctx, seq)
	if !errors.Is(err, sink.ErrNotFound) || seq == 1 || ended && l.at == seq-1 {
		return m, err
	}
	return l.locate(ctx, seq, err)
}

// own reads an entry of the shard's own log.
func (l *shardLog) own(ctx context.Context, seq int64) (*Manifest, error) {
	key := ManifestKey(l.shard, seq)
	data, err := sink.ReadAll(ctx, l.store, key)
	if err != nil {
		return nil, err
	}
	m, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if m.Shard != l.shard || m.Seq != seq {
		return nil, fmt.Errorf("%w: %s holds shard %d, sequence %d", ErrDamaged, key, m.Shard, m.Seq)
	}
	l.met(m)
	return m, nil
}

// met notes where a manifest lies.
func (l *shardLog) met(m *Manifest) {
	switch d := m.group; {
	case d.Session == "" && (l.entry == nil || m.Seq > l.entry.Seq):
		l.entry, l.at, l.over = m, m.Seq, 0
	case d.Session == "" || l.entry == nil || l.entry.Session == nil:
	case *l.entry.Session == Delegation{d.Session, d.From - (m.Seq - l.entry.Seq - 1)}:
		l.at = max(l.at, m.Seq)
	}
}

// inSession reads a manifest in the session that the entry delegates the shard to. With ErrNotFound, end says whether
// the number lies at or behind the end of the shard's line there; if not, it was not written yet, or there are numbers
// before it that were not.
func (l *shardLog) inSession(ctx context.Context, seq int64) (m *Manifest, end bool, err error) {
	d := l.entry.Session
	g, err := readGroup(ctx, l.store, d.Session, l.entry.groupOf(seq))
	if err != nil {
		return nil, false, err
	}
	if m = g.Part(l.shard); m == nil || m.Seq != seq {
		l.over = seq
		return nil, true, fmt.Errorf("session %s ends before manifest %d of shard %d: %w", d.Session, seq, l.shard,
			sink.ErrNotFound)
	}
	l.at = max(l.at, seq)
	return m, false, nil
}

// locate looks for a manifest that is not in the shard's own log: in the session of the newest delegation before it.
func (l *shardLog) locate(ctx context.Context, seq int64, missing error) (*Manifest, error) {
	l.entry, l.at, l.over = nil, 0, 0
	_, err := l.own(ctx, seq-1)
	if errors.Is(err, sink.ErrNotFound) {
		var before int64
		if before, err = l.newestOwn(ctx, seq-1); err == nil && before == 0 {
			return nil, missing
		}
		if err == nil {
			_, err = l.own(ctx, before)
		}
	}
	if errors.Is(err, sink.ErrNotFound) || err == nil && l.entry.Session == nil {
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	m, end, err := l.inSession(ctx, seq)
	if errors.Is(err, sink.ErrNotFound) && !end && l.at < seq-1 {
		// Is it the next one? Then asking again costs one request.
		if _, _, perr := l.inSession(ctx, seq-1); perr != nil && !errors.Is(perr, sink.ErrNotFound) {
			return nil, perr
		}
	}
	if errors.Is(err, sink.ErrNotFound) {
		err = missing
	}
	return m, err
}

// newestOwn returns the newest number below seq in the shard's own log, 0 for none.
func (l *shardLog) newestOwn(ctx context.Context, seq int64) (newest int64, err error) {
	for info, err := range l.store.List(ctx, manifestPrefix(l.shard), "") {
		if err != nil {
			return 0, fmt.Errorf("list the commit log of shard %d: %w", l.shard, err)
		}
		number, err := manifestSeq(l.shard, info.Key)
		if err != nil {
			return 0, err
		}
		if number >= seq {
			break
		}
		newest = number
	}
	return newest, nil
}

// ownAfter returns the oldest number above seq in the shard's own log, 0 for none.
func (l *shardLog) ownAfter(ctx context.Context, seq int64) (int64, error) {
	for info, err := range l.store.List(ctx, manifestPrefix(l.shard), ManifestKey(l.shard, seq)) {
		if err != nil {
			return 0, fmt.Errorf("list the commit log of shard %d: %w", l.shard, err)
		}
		number, err := manifestSeq(l.shard, info.Key)
		if err != nil || number > seq {
			return number, err
		}
	}
	return 0, nil
}

// after returns the oldest number above seq that is there, 0 for none, where seq is the end of what was found.
func (l *shardLog) after(ctx context.Context, seq int64) (int64, error) {
	in, err := l.sessionAfter(ctx, seq)
	if err != nil || in == seq+1 {
		return in, err
	}
	own, err := l.ownAfter(ctx, seq)
	if own == 0 || in > 0 && in < own {
		own = in
	}
	return own, err
}

// sessionAfter is after in the session that entry delegates the shard to.
func (l *shardLog) sessionAfter(ctx context.Context, seq int64) (int64, error) {
	if l.entry == nil || l.entry.Session == nil || l.over > 0 && l.over <= seq+1 {
		return 0, nil
	}
	session := l.entry.Session.Session
	at := l.entry.groupOf(seq)
	for info, err := range l.store.List(ctx, sessionPrefix(session), groupKey(session, at)) {
		if err != nil {
			return 0, fmt.Errorf("list the log of session %s: %w", session, err)
		}
		_, number, ok := parseGroupKey(info.Key)
		if !ok {
			break // the row objects come after the group manifests
		}
		g, err := readGroup(ctx, l.store, session, number)
		if errors.Is(err, sink.ErrNotFound) {
			continue // it has just been removed
		}
		if err != nil {
			return 0, err
		}
		if m := g.Part(l.shard); m != nil && m.Seq == seq+number-at {
			return m.Seq, nil
		}
		break // here the line ends, if not before
	}
	return 0, nil
}

// groupOf returns the number of the group manifest that a number after a delegation lies in.
func (m *Manifest) groupOf(seq int64) int64 { return m.Session.From + seq - m.Seq - 1 }

// key is the object that a number lies in, or would lie in, if the one before it was found last.
func (l *shardLog) key(seq int64) string {
	if l.entry == nil || l.entry.Session == nil || seq <= l.entry.Seq || l.over > 0 && l.over <= seq {
		return ManifestKey(l.shard, seq)
	}
	return groupKey(l.entry.Session.Session, l.entry.groupOf(seq))
}

// has reports whether there is a manifest with the number.
func (l *shardLog) has(ctx context.Context, seq int64) (bool, error) {
	_, err := l.read(ctx, seq)
	if errors.Is(err, sink.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// end finds the newest number from one on that existed (0: none), up to the first gap. Looking for single objects costs
// the same in a log of any length; a listing does not.
func (l *shardLog) end(ctx context.Context, from int64) (int64, error) {
	for {
		at, err := gallop(from, func(seq int64) (bool, error) {
			return exists(ctx, l.store, ManifestKey(l.shard, seq))
		})
		if err != nil || at == 0 {
			return at, err
		}
		// The numbers after a delegation lie in its session.
		m, err := l.read(ctx, at)
		if errors.Is(err, sink.ErrNotFound) {
			return at, nil // removed
		}
		if err != nil || m.Session == nil && m.group.Session == "" {
			return at, err
		}
		at, err = gallop(at, func(seq int64) (bool, error) {
			_, _, err := l.inSession(ctx, seq)
			if errors.Is(err, sink.ErrNotFound) {
				return false, nil
			}
			return err == nil, err
		})
		if err != nil {
			return 0, err
		}
		next, err := exists(ctx, l.store, ManifestKey(l.shard, at+1))
		if err != nil || !next {
			return at, err
		}
		from = at + 1
	}
}

// gallop finds the last number, from one on for which it is so, for which `there` is true. Numbers have no gaps, so
// "is there manifest k" is monotone in k.
func gallop(from int64, there func(int64) (bool, error)) (int64, error) {
	low, high := from, int64(-1) // true at low, false at high
	for step := int64(0); high < 0 || high-low > 1; {
		probe := low + max(1, step)
		if high >= 0 {
			probe = low + (high-low)/2
		}
		ok, err := there(probe)
		switch {
		case err != nil:
			return 0, err
		case ok:
			low, step = probe, max(1, step*2) // 1, 1, 2, 4, …: a follower mostly finds one
		default:
			high = probe
		}
	}
	return low, nil
}
