package commitlog

import (
	"context"
	"errors"
	"fmt"

	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/audit"
)

// isStore reports whether an error is a failure of the store, and not what an object says.
func isStore(err error) bool {
	_, ok := errors.AsType[*sink.Error](err)
	return ok
}

// logAudit is what the audits of the shards share.
type logAudit struct {
	*audit.Audit
	shards []*shardAudit
	groups map[string]groupRead
	bad    map[string]error // row objects that were verified, nil for whole ones
	// merged are damaged row objects of several shards that some shard has merged.
	merged map[string]bool
	// missing are manifests' objects that were reported.
	missing map[string]bool
}

// groupRead is the outcome of reading a group manifest.
type groupRead struct {
	group *GroupManifest
	err   error // ErrDamaged, or damage of the store
}

// line is a stretch of a shard's log in a session.
type line struct {
	delegation *Manifest
	newest     int64 // number met there, or the delegation's own
	over       int64 // number behind the end of the line: a group manifest without the shard was met; 0 for none
}

// placeManifests finds the objects that have the shard's manifests: those of its own log, and the group manifests of
// the sessions that it was delegated to.
func (s *shardAudit) placeManifests(ctx context.Context) error {
	for _, key := range s.Keys(manifestPrefix(s.shard)) {
		seq, err := manifestSeq(s.shard, key)
		if err != nil {
			continue // nobody claims it
		}
		if group, twice := s.keys[seq]; twice && seq > s.boundary.Seq {
			if err := s.forked(ctx, seq, key, group); err != nil {
				return err
			}
		}
		s.keys[seq] = key
		m, _, err := s.readManifest(ctx, key)
		if err == nil && m.Session != nil {
			err = s.placeSession(ctx, m)
		}
		if err != nil && isStore(err) && !audit.IsDamage(err) {
			return err
		}
	}
	return nil
}

// placeSession adds the numbers after a delegation. A group manifest that is not there ends the line only if no later
// one has the shard.
func (s *shardAudit) placeSession(ctx context.Context, m *Manifest) error {
	l := &line{delegation: m, newest: m.Seq}
	s.lines[m.Seq] = l
	for _, key := range s.Keys(sessionPrefix(m.Session.Session)) {
		_, number, ok := parseGroupKey(key)
		if !ok || number < m.Session.From {
			continue
		}
		seq := m.Seq + 1 + number - m.Session.From
		g, err := s.group(ctx, key)
		if err == nil {
			if part := g.Part(s.shard); part == nil || part.Seq != seq {
				l.over = seq
				return nil
			}
		} else if isStore(err) && !audit.IsDamage(err) {
			return err
		}
		s.keys[seq], l.newest = key, seq
	}
	return nil
}

// forked reports a number that both the shard's own log and a session have.
func (s *shardAudit) forked(ctx context.Context, seq int64, own, group string) error {
	g, err := s.group(ctx, group)
	if err != nil || g.Sealed {
		return nil //nolint:nilerr // a damaged seal, say: the sessions' audit reports it
	}
	return s.lost(ctx, group, fmt.Sprintf("it has manifest %d of shard %d, and so has %s: the session has gone on "+
		"after the shard was taken over", seq, s.shard, own))
}

// place returns the object that a number lies in, or would lie in.
func (s *shardAudit) place(seq int64) string {
	for before := seq - 1; before > 0; before-- {
		key, found := s.keys[before]
		if _, _, grouped := parseGroupKey(key); !found || grouped {
			continue
		}
		if l := s.lines[before]; l != nil && (l.over == 0 || seq < l.over) {
			return groupKey(l.delegation.Session.Session, l.delegation.groupOf(seq))
		}
		break
	}
	return ManifestKey(s.shard, seq)
}

// removedAfter reports whether the numbers between two that are there may be gone on purpose: the first is a
// delegation, which stays as long as numbers after the boundary lie in its session.
func (s *shardAudit) removedAfter(seq, next int64) bool {
	return s.lines[seq] != nil && next > seq+1 && len(s.log) == 1 && s.log[seq] != nil
}

// group reads a listed group manifest, once.
func (l *logAudit) group(ctx context.Context, key string) (*GroupManifest, error) {
	if r, ok := l.groups[key]; ok {
		return r.group, r.err
	}
	session, number, ok := parseGroupKey(key)
	if !ok {
		return nil, fmt.Errorf("%w: %q is no group manifest's name", ErrDamaged, key)
	}
	g, err := readGroup(ctx, l.Store, session, number)
	if err != nil && isStore(err) && !audit.IsDamage(err) {
		return nil, err
	}
	if g != nil {
		g.Shards = nil // the parts say it all
	}
	l.groups[key] = groupRead{g, err}
	return g, err
}

// readManifest reads a manifest of the shard from its own log or from a group manifest.
func (s *shardAudit) readManifest(ctx context.Context, key string) (m *Manifest, sealed bool, err error) {
	if _, _, ok := parseGroupKey(key); ok {
		g, err := s.group(ctx, key)
		if err != nil {
			return nil, true, err
		}
		if m = g.Part(s.shard); m == nil {
			return nil, true, fmt.Errorf("%w: %s does not have shard %d", ErrDamaged, key, s.shard)
		}
		return m, true, nil
	}
	data, err := sink.ReadAll(ctx, s.Store, key)
	if err != nil {
		return nil, false, err
	}
	_, sealed, _ = seal.Open(data)
	m, err = Decode(data)
	return m, sealed, err
}
