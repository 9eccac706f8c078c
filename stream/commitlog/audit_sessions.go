package commitlog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"giantstream/sink/audit"
)

// sessions checks what the shards' audits leave of the logs of sessions: group manifests that cannot be read or that no
// shard's log leads to, seals, and row objects that wait for their removal.
func (l *logAudit) sessions(ctx context.Context) error {
	newest := map[string]int64{} // group manifest of a session, damaged ones included
	for _, key := range l.Keys(sessionsPrefix) {
		session, number, ok := parseGroupKey(key)
		if !ok {
			continue
		}
		newest[session] = max(newest[session], number)
		g, err := l.group(ctx, key)
		switch {
		case err == nil:
			l.Document(key, true)
			err = l.parts(ctx, key, g)
		case errors.Is(err, ErrDamaged) || audit.IsDamage(err):
			l.Claim(key)
			err = l.Found(ctx, audit.Finding{Kind: audit.Lost, Object: key, What: err.Error(),
				Lost: "which windows of several shards were committed here; their readers and workers stop here",
				Do:   restoreIt}, "", nil)
		}
		if err != nil {
			return err
		}
	}
	if err := l.seals(ctx, newest); err != nil {
		return err
	}
	for _, key := range l.Keys(sessionsPrefix) {
		if session, number, ok := parseGroupRowKey(key); ok && number <= newest[session] {
			l.Claim(key) // named, merged, or of an attempt that failed
		}
	}
	return l.mergedRows(ctx)
}

// parts compares a group manifest with the logs of its shards. A delegation is created before the first group manifest
// that has the shard, so if no entry of the shard's own log leads here, one is lost.
func (l *logAudit) parts(ctx context.Context, key string, g *GroupManifest) error {
	for _, part := range g.Parts() {
		if part.Shard >= len(l.shards) {
			if err := l.Found(ctx, audit.Finding{Kind: audit.Lost, Object: key,
				What: fmt.Sprintf("it has shard %d, the store has %d", part.Shard, len(l.shards)), Do: restoreIt},
				"", nil); err != nil {
				return err
			}
			continue
		}
		s := l.shards[part.Shard]
		stretch := Delegation{g.Session, part.Seq - g.Number}
		if _, met := s.stretches[stretch]; !met {
			s.stretches[stretch] = part.Seq
		}
		object := ManifestKey(part.Shard, s.stretches[stretch]-1)
		if part.Seq <= s.boundary.Seq || s.keys[part.Seq] != "" || l.missing[object] || l.reported(object) {
			continue
		}
		l.missing[object] = true
		if l.Has(object) { // it is whole and leads elsewhere
			object = key
		}
		if err := s.lost(ctx, object, fmt.Sprintf("session %s has manifest %d of shard %d, and no entry of the "+
			"shard's log leads there", g.Session, part.Seq, part.Shard)); err != nil {
			return err
		}
	}
	return nil
}

func (l *logAudit) reported(object string) bool {
	return slices.ContainsFunc(l.Findings, func(f audit.Finding) bool { return f.Object == object })
}

// seals looks for seals that are missing: a shard's own log goes on after a line that no group manifest ends. The seal
// stays for ever, so that the writer of the session, should it come back, commits nothing more.
func (l *logAudit) seals(ctx context.Context, newest map[string]int64) error {
	missing := map[Delegation]string{} // the seals, and an entry that was created after each
	for _, s := range l.shards {
		for _, line := range s.lines {
			at := Delegation{line.delegation.Session.Session, line.delegation.groupOf(line.newest + 1)}
			next := ManifestKey(s.shard, line.newest+1)
			if line.over == 0 && at.From > newest[at.Session] && s.keys[line.newest+1] == next {
				missing[at] = next
			}
		}
	}
	keys := map[string]Delegation{}
	for at := range missing {
		keys[groupKey(at.Session, at.From)] = at
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		at := keys[key]
		if err := l.Found(ctx, audit.Finding{Kind: audit.Derived, Object: key,
			What: fmt.Sprintf("the seal of the session is missing: %s was created after it", missing[at]),
			Lost: "nothing yet; a worker of the session that comes back could commit beside the shards' owners"},
			"seal the session again", func(ctx context.Context) error {
				return createSeal(ctx, l.Store, at, "verify", time.Now())
			}); err != nil {
			return err
		}
	}
	return nil
}

// mergedRows reports damaged row objects that some shards have merged. Those that have not have reported them.
func (l *logAudit) mergedRows(ctx context.Context) error {
	for _, key := range slices.Sorted(maps.Keys(l.merged)) {
		if l.reported(key) {
			continue
		}
		if err := l.mergedRow(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// mergedRow reports a damaged row object of windows that are merged.
func (l *logAudit) mergedRow(ctx context.Context, key string) error {
	return l.Found(ctx, audit.Finding{Kind: audit.Derived, Object: key, What: l.bad[key].Error(),
		Lost: "nothing: its rows are in a merged block as well"},
		"remove the object, which only readers of old cuts look for",
		func(ctx context.Context) error { return l.Store.Delete(ctx, key) })
}
