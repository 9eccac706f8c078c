package commitlog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"giantstream/internal/seal"
	"giantstream/sink"
)

// groupFormat is the version of the group manifests' JSON. Format page: docs/format/manifest.md.
const groupFormat = 1

// Delegation says that the numbers after its manifest lie in the log of a session: the k-th group manifest from From on
// has the k-th number after it. See the package comment, "Group commit".
type Delegation struct {
	Session string `json:"session"`
	From    int64  `json:"from"`
}

// GroupManifest is one entry of a session's log, created once under sessions/<session>/<number, 20 digits>.json. It
// holds the next manifest of every shard that is delegated to the session. A sealed one holds none, and ends the log.
type GroupManifest struct {
	Format  int       `json:"format"`
	Session string    `json:"session"`
	Number  int64     `json:"number"` // 1, 2, 3, … without gaps
	Writer  string    `json:"writer"`
	Created time.Time `json:"created"`
	// Sealed: a worker that took over a shard of the session has ended its log here.
	Sealed bool              `json:"sealed,omitempty"`
	Shards []json.RawMessage `json:"shards,omitempty"`

	parts map[int]*Manifest
}

// Part returns the manifest of a shard, nil if the group manifest does not have the shard.
func (g *GroupManifest) Part(shard int) *Manifest { return g.parts[shard] }

// Parts returns the manifests, in the order of the shards.
func (g *GroupManifest) Parts() []*Manifest {
	return slices.SortedFunc(maps.Values(g.parts), func(a, b *Manifest) int { return cmp.Compare(a.Shard, b.Shard) })
}

const sessionsPrefix = "sessions/"

func sessionPrefix(session string) string { return sessionsPrefix + session + "/" }

// groupKey is the object of a session's group manifest.
func groupKey(session string, number int64) string {
	return fmt.Sprintf("%s%020d.json", sessionPrefix(session), number)
}

// parseGroupKey is the inverse of groupKey.
func parseGroupKey(key string) (session string, number int64, ok bool) {
	parts := strings.Split(key, "/")
	if len(parts) != 3 {
		return "", 0, false
	}
	number, err := strconv.ParseInt(strings.TrimSuffix(parts[2], ".json"), 10, 64)
	return parts[1], number, err == nil && number > 0 && groupKey(parts[1], number) == key
}

func groupRowsPrefix(session string) string { return sessionPrefix(session) + "rows/" }

// GroupRowKey names the n-th row object of a group manifest. Only that group manifest names it.
func GroupRowKey(session string, number, n int64) string {
	return fmt.Sprintf("%s%020d-%d.parquet", groupRowsPrefix(session), number, n)
}

// parseGroupRowKey is the inverse of GroupRowKey.
func parseGroupRowKey(key string) (session string, number int64, ok bool) {
	parts := strings.Split(key, "/")
	if len(parts) != 4 || parts[2] != "rows" {
		return "", 0, false
	}
	first, second, _ := strings.Cut(strings.TrimSuffix(parts[3], ".parquet"), "-")
	number, err := strconv.ParseInt(first, 10, 64)
	n, nerr := strconv.ParseInt(second, 10, 64)
	return parts[1], number, err == nil && nerr == nil && number > 0 && GroupRowKey(parts[1], number, n) == key
}

// Encode returns the group manifest's object with the manifests given, or an error if it says what no reader accepts.
func (g *GroupManifest) Encode(parts []*Manifest) ([]byte, error) {
	g.Format, g.Shards, g.parts = groupFormat, nil, map[int]*Manifest{}
	for _, m := range parts {
		if err := m.check(); err != nil {
			return nil, err
		}
		data, err := json.Marshal(m)
		if err != nil {
			return nil, fmt.Errorf("encode manifest %d of shard %d: %w", m.Seq, m.Shard, err)
		}
		m.digest, m.group = digestOf(data), Delegation{g.Session, g.Number}
		g.Shards, g.parts[m.Shard] = append(g.Shards, data), m
	}
	if err := g.check(); err != nil {
		return nil, err
	}
	data, err := seal.JSON(g)
	if err != nil {
		return nil, fmt.Errorf("encode group manifest %d of session %s: %w", g.Number, g.Session, err)
	}
	return data, nil
}

// DecodeGroup decodes a group manifest. It refuses what this version does not know.
func DecodeGroup(data []byte) (*GroupManifest, error) {
	g := &GroupManifest{}
	sealed, err := decodeSealed(data, g)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: group manifest does not parse: %w", ErrDamaged, err)
	case g.Format != groupFormat:
		return nil, fmt.Errorf("group manifest has format %d, this version reads %d: it was written by another release",
			g.Format, groupFormat)
	case !sealed:
		return nil, fmt.Errorf("%w: group manifest %d of session %s has no checksum", ErrDamaged, g.Number, g.Session)
	}
	g.parts = map[int]*Manifest{}
	for _, raw := range g.Shards {
		m, err := decodePart(raw)
		if err != nil {
			return nil, err
		}
		if g.parts[m.Shard] != nil {
			return nil, fmt.Errorf("%w: group manifest %d of session %s has shard %d twice", ErrDamaged, g.Number,
				g.Session, m.Shard)
		}
		m.group = Delegation{g.Session, g.Number}
		g.parts[m.Shard] = m
	}
	return g, g.check()
}

// decodePart decodes a shard's manifest in a group manifest. Its digest is that of its JSON without spaces.
func decodePart(raw json.RawMessage) (*Manifest, error) {
	var compact bytes.Buffer
	m := &Manifest{}
	err := json.Compact(&compact, raw)
	if err == nil {
		err = decodeStrict(compact.Bytes(), m)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: manifest in a group does not parse: %w", ErrDamaged, err)
	}
	if m.Format != GroupManifestFormat {
		return nil, fmt.Errorf("manifest in a group has format %d, this version reads %d: it was written by another "+
			"release", m.Format, GroupManifestFormat)
	}
	m.digest = digestOf(compact.Bytes())
	return m, m.check()
}

// check verifies what all readers rely on.
func (g *GroupManifest) check() error {
	switch {
	case g.Session == "" || strings.Contains(g.Session, "/") || g.Number < 1:
		return fmt.Errorf("%w: group manifest %d of session %q", ErrDamaged, g.Number, g.Session)
	case g.Sealed != (len(g.parts) == 0):
		return fmt.Errorf("%w: group manifest %d of session %s has %d shards, sealed: %t", ErrDamaged, g.Number,
			g.Session, len(g.parts), g.Sealed)
	}
	for _, m := range g.parts {
		if m.Session != nil {
			return fmt.Errorf("%w: group manifest %d of session %s delegates shard %d", ErrDamaged, g.Number, g.Session,
				m.Shard)
		}
		for _, o := range m.Objects {
			if session, number, ok := parseGroupRowKey(o.Key); !ok || session != g.Session || number != g.Number {
				return fmt.Errorf("%w: group manifest %d of session %s names object %q", ErrDamaged, g.Number,
					g.Session, o.Key)
			}
		}
	}
	return nil
}

// readGroup reads a group manifest.
func readGroup(ctx context.Context, store sink.Store, session string, number int64) (*GroupManifest, error) {
	key := groupKey(session, number)
	data, err := sink.ReadAll(ctx, store, key)
	if err != nil {
		return nil, err
	}
	g, err := DecodeGroup(data)
	if err == nil && (g.Session != session || g.Number != number) {
		err = fmt.Errorf("%w: it holds number %d of session %s", ErrDamaged, g.Number, g.Session)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return g, nil
}

// Takeover ends the line of the shard's head, if it lies in a session's log: it seals the session, so that nobody
// commits for the shard there any more. It returns the shard's newest manifest; the number after that lies in the
// shard's own log, and whoever creates it owns the shard. The manifest may be newer than head. If it does not repeat
// what the caller knows (Manifest.RepeatsOf), another worker has committed since; then nothing was sealed.
//
// ErrRemoved if the boundary has passed the end of the line: another worker has gone on long ago.
func Takeover(ctx context.Context, store sink.Store, shard int, head *Manifest, writer string,
	now time.Time) (*Manifest, error) {
	if head == nil || head.Session == nil && head.group.Session == "" {
		return head, nil
	}
	known, next := head.Seq, head.group
	next.From++
	if head.Session != nil {
		next = *head.Session
	}
	for {
		g, err := readGroup(ctx, store, next.Session, next.From)
		switch {
		case errors.Is(err, sink.ErrNotFound):
			err = createSeal(ctx, store, next, writer, now)
			if err != nil && !errors.Is(err, sink.ErrExists) {
				return nil, fmt.Errorf("seal session %s for shard %d: %w", next.Session, shard, err)
			}
			if err != nil {
				continue // look what is there
			}
		case err != nil:
			return nil, err
		case g.parts[shard] != nil && g.parts[shard].Seq == head.Seq+1:
			head, next.From = g.parts[shard], next.From+1
			if head.RepeatsOf() > known {
				return head, nil // the caller has lost, and leaves the session alone
			}
			continue
		}
		// What was read and created counts only if the boundary is below it now: a removed number is free.
		return head, CheckCreated(ctx, store, shard, head.Seq+1)
	}
}

// createSeal ends a session's log at a number.
func createSeal(ctx context.Context, store sink.Store, at Delegation, writer string, now time.Time) error {
	g := &GroupManifest{Session: at.Session, Number: at.From, Writer: writer, Created: now.UTC(), Sealed: true}
	data, err := g.Encode(nil)
	if err != nil {
		return err
	}
	return store.Create(ctx, groupKey(at.Session, at.From), data)
}
