package commitlog

import (
	"errors"
	"strings"
	"testing"

	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/audit"
	"giantstream/sink/memstore"
)

// What a past release wrote with stream.commit: group: the first manifest of a shard's own log says that the numbers
// after it lie in the log of a session, which has the second.
const (
	delegation = `{"format":4,"shard":0,"seq":1,"writer":"w-9f3c51d00a7e","next_offsets":{},"objects":[],"rows":0,` +
		`"generation":0,"nodes":0,"edges":0,"created":"2026-11-24T09:00:00Z","rows_committed":0,` +
		`"session":{"session":"9f3c51d00a7e","from":1},"checksum":"crc32c:94f430cf"}`
	groupManifestKey = "sessions/9f3c51d00a7e/00000000000000000001.json"
	groupManifest    = `{"format":1,"session":"9f3c51d00a7e","number":1,"writer":"w-9f3c51d00a7e",` +
		`"created":"2026-11-24T09:00:00Z","shards":[{"format":4,"shard":0,"seq":2,"writer":"w-9f3c51d00a7e",` +
		`"next_offsets":{},"objects":[],"rows":0,"generation":0,"nodes":0,"edges":0,` +
		`"created":"2026-11-24T09:00:00Z","rows_committed":0,` +
		`"previous":"d612f6fcb8109c2ec0d8509ff64980e619b8dd7836c3ab177ff0efbe4eb8e8a4"}],"checksum":"crc32c:62fcebab"}`
)

// A store that a past release wrote with stream.commit: group is refused with a sentence that says what to do, by
// everything that opens a store, and by readers of a log that never opened it.
func TestGroupCommitsAreRefused(t *testing.T) {
	ctx := t.Context()
	store := &memstore.Store{}
	mine, err := EnsureIdentity(ctx, store, Identity{Name: "catalog", Shards: 1}, false)
	if err != nil {
		t.Fatal(err)
	}
	boundary, err := seal.JSON(Boundary{Format: groupBoundaryFormat, Shard: 1, Seq: 64, Digest: "d612f6fc"},
		sink.PlaceOf(store, boundaryKey(1)))
	if err != nil {
		t.Fatal(err)
	}
	for key, data := range map[string]string{ManifestKey(0, 1): delegation, groupManifestKey: groupManifest,
		boundaryKey(1): string(boundary)} {
		if err := sink.PutBytes(ctx, store, key, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	a, err := audit.New(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	for _, open := range []struct {
		what string
		do   func() error
	}{
		{"load", func() error { _, err := LoadIdentity(ctx, store); return err }},
		{"start", func() error { _, err := EnsureIdentity(ctx, store, mine, true); return err }},
		{"claim", func() error { return ClaimIdentity(ctx, store, mine) }},
		{"verify", func() error { _, err := AuditIdentity(ctx, a); return err }},
		{"head", func() error { _, err := Head(ctx, store, 0); return err }},
		{"boundary", func() error { _, err := ReadBoundary(ctx, store, 1); return err }},
	} {
		if err := open.do(); !errors.Is(err, ErrGroupCommit) || errors.Is(err, ErrDamaged) ||
			!strings.Contains(err.Error(), "'giantstream reshard' of the release that wrote it") {
			t.Errorf("%s: %v", open.what, err)
		}
	}
}
