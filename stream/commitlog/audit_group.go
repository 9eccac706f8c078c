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

// placeManifests returns the objects that have the shard's manifests, by number: those of its own log, and the group
// manifests of the sessions that it was delegated to.
func (s *shardAudit) placeManifests(ctx context.Context) (map[int64]string, error) {
	keys := map[int64]string{}
	for _, key := range s.Keys(manifestPrefix(s.shard)) {
		seq, err := manifestSeq(s.shard, key)
		if err != nil {
			continue // nobody claims it
		}
		keys[seq] = key
		m, _, err := s.readManifest(ctx, key)
		if err == nil && m.Session != nil {
			err = s.placeSession(ctx, m, keys)
		}
		if err != nil && isStore(err) && !audit.IsDamage(err) {
			return nil, err
		}
	}
	return keys, nil
}

// placeSession adds the numbers after a delegation.
func (s *shardAudit) placeSession(ctx context.Context, m *Manifest, keys map[int64]string) error {
	for seq, number := m.Seq+1, m.Session.From; ; seq, number = seq+1, number+1 {
		key := groupKey(m.Session.Session, number)
		if !s.Has(key) {
			if seq > s.boundary.Seq {
				return nil
			}
			continue // it was removed
		}
		g, err := s.group(ctx, key)
		if err == nil {
			if part := g.Part(s.shard); part == nil || part.Seq != seq {
				return nil
			}
		} else if isStore(err) && !audit.IsDamage(err) {
			return err
		}
		keys[seq] = key
	}
}

// group reads a listed group manifest.
func (s *shardAudit) group(ctx context.Context, key string) (*GroupManifest, error) {
	session, number, ok := parseGroupKey(key)
	if !ok {
		return nil, fmt.Errorf("%w: %q is no group manifest's name", ErrDamaged, key)
	}
	return readGroup(ctx, s.Store, session, number)
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

// AuditSessions checks what the shards' audits leave of the logs of sessions: seals, group manifests behind the
// boundaries, and row objects that wait for their removal.
func AuditSessions(ctx context.Context, a *audit.Audit) error {
	newest := map[string]int64{}
	for _, key := range a.Keys(sessionsPrefix) {
		if session, number, ok := parseGroupKey(key); ok {
			newest[session] = max(newest[session], number)
			_, err := readGroup(ctx, a.Store, session, number)
			switch {
			case err == nil:
				a.Document(key, true)
			case errors.Is(err, ErrDamaged) || audit.IsDamage(err):
				a.Claim(key)
				if err := a.Found(ctx, audit.Finding{Kind: audit.Lost, Object: key, What: err.Error(),
					Lost: "which windows of several shards were committed here; their readers and workers stop here",
					Do:   restoreIt}, "", nil); err != nil {
					return err
				}
			case isStore(err):
				return err
			}
		}
	}
	for _, key := range a.Keys(sessionsPrefix) {
		if session, number, ok := parseGroupRowKey(key); ok && number <= newest[session] {
			a.Claim(key) // named, merged, or of an attempt that failed
		}
	}
	return nil
}
