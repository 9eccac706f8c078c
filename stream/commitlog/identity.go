package commitlog

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"giantstream/internal/seal"
	"giantstream/sink"
)

// ErrIdentity: the store or the local state belongs to another pipeline.
var ErrIdentity = errors.New("belongs to another pipeline")

// ErrSettings: the store was made with other settings of what the graph is.
var ErrSettings = errors.New("was made with other settings")

// identityFormat is the version of the store's layout. Readers accept 1, which had no ID and no
// settings.
const identityFormat = 2

const (
	// identityKey names the identity's object.
	identityKey = "pipeline.json"
	// idKey names the object with the id of a store that was made with format 1. Several workers may
	// upgrade the store at once, and one of them creates it.
	idKey = "pipeline-id"
)

// Identity is what a store belongs to. The first run writes it, and every later run compares it.
type Identity struct {
	Format     int    `json:"format"`
	Name       string `json:"name"`
	Shards     int    `json:"shards"`
	Undirected bool   `json:"undirected"`
	// ID is random, 16 hexadecimal digits. It tells pipelines of the same name apart. It is "" only
	// in a store of format 1 that no later version has opened yet.
	ID string `json:"id,omitempty"`
	// Settings are those by which records become the graph, by their names in the configuration.
	Settings map[string]string `json:"settings,omitempty"`
	// Hash is that of Settings, for people and tools: the SHA-256 of their JSON, keys ascending.
	Hash string `json:"settings_sha256,omitempty"`
}

// EnsureIdentity writes the identity into an empty store, or compares it with the store's, and
// returns that of the store. Of several workers that start at once, one writes and the others
// compare. Settings that differ are ErrSettings, unless they are accepted and replace those of the
// store. A store of an older version gets an ID and the settings.
func EnsureIdentity(ctx context.Context, store sink.Store, want Identity, acceptSettings bool) (Identity, error) {
	if want.Name == "" || want.Shards < 1 {
		return want, fmt.Errorf("identity needs a name and at least one shard, has %q and %d", want.Name, want.Shards)
	}
	want.Format, want.Hash = identityFormat, hashSettings(want.Settings)
	have, err := LoadIdentity(ctx, store)
	if errors.Is(err, sink.ErrNotFound) {
		want.ID = newID()
		if err := writeIdentity(ctx, store.Create, want); err == nil {
			return want, nil
		} else if !errors.Is(err, sink.ErrExists) {
			return want, fmt.Errorf("claim the store: %w", err)
		}
		have, err = LoadIdentity(ctx, store)
	}
	if err != nil {
		return want, err
	}
	if err := have.compare(want, store.URL()); err != nil {
		return want, err
	}
	want.ID = have.ID
	if have.ID == "" {
		if want.ID, err = upgradeID(ctx, store); err != nil {
			return want, err
		}
	}
	if have.Format == identityFormat && maps.Equal(have.Settings, want.Settings) {
		return have, nil
	}
	used, err := anyShard(ctx, store)
	if err != nil {
		return want, err
	}
	if changed := difference(have.Settings, want.Settings); have.Format == identityFormat && used && !acceptSettings {
		return want, fmt.Errorf("store %s %w: %s. They decide what the graph is: rows that are committed keep "+
			"what the old ones made of their records. Use the settings of before, or another store and a backfill, "+
			"or go on with the new ones for new records alone with 'giantstream run --accept-settings'",
			store.URL(), ErrSettings, strings.Join(changed, "; "))
	}
	put := func(ctx context.Context, key string, data []byte) error { return sink.PutBytes(ctx, store, key, data) }
	if err := writeIdentity(ctx, put, want); err != nil {
		return want, fmt.Errorf("renew the store's identity: %w", err)
	}
	return want, nil
}

func writeIdentity(ctx context.Context, write func(ctx context.Context, key string, data []byte) error,
	id Identity) error {
	data, err := seal.JSON(id)
	if err != nil {
		return fmt.Errorf("encode identity: %w", err)
	}
	return write(ctx, identityKey, data)
}

// anyShard reports whether a shard has written anything. Before that, settings bind nobody.
func anyShard(ctx context.Context, store sink.Store) (bool, error) {
	for _, err := range store.List(ctx, "shards/", "") {
		return err == nil, err
	}
	return false, nil
}

func newID() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// upgradeID returns the ID of a store of format 1, which the first caller draws.
func upgradeID(ctx context.Context, store sink.Store) (string, error) {
	id := newID()
	err := store.Create(ctx, idKey, []byte(id))
	if errors.Is(err, sink.ErrExists) {
		var data []byte
		data, err = sink.ReadAll(ctx, store, idKey)
		id = string(data)
	}
	if err != nil {
		return "", fmt.Errorf("give the pipeline an id: %w", err)
	}
	return id, nil
}

// LoadIdentity reads the store's identity; sink.ErrNotFound if no pipeline has claimed the store.
func LoadIdentity(ctx context.Context, store sink.Store) (Identity, error) {
	data, err := sink.ReadAll(ctx, store, identityKey)
	if err != nil {
		return Identity{}, fmt.Errorf("read the store's identity: %w", err)
	}
	body, _, err := seal.Open(data)
	if err != nil {
		return Identity{}, fmt.Errorf("%s: %w: %w", identityKey, ErrDamaged, err)
	}
	var have Identity
	if err := json.Unmarshal(body, &have); err != nil {
		return Identity{}, fmt.Errorf("%s does not parse: %w", identityKey, err)
	}
	if have.Format < 1 || have.Format > identityFormat {
		return Identity{}, fmt.Errorf("%s has format %d, this version reads 1 to %d: the store was made by another "+
			"release", identityKey, have.Format, identityFormat)
	}
	return have, nil
}

// compare compares what can never change.
func (have Identity) compare(want Identity, url string) error {
	var what string
	switch {
	case have.Name != want.Name:
		what = fmt.Sprintf("it is named %q, not %q", have.Name, want.Name)
	case have.Shards != want.Shards:
		what = fmt.Sprintf("it has %d shards, not %d; the number is fixed when a pipeline is created", have.Shards,
			want.Shards)
	case have.Undirected != want.Undirected:
		what = fmt.Sprintf("undirected is %t there and %t here", have.Undirected, want.Undirected)
	default:
		return nil
	}
	return fmt.Errorf("store %s %w: %s; use another store or the settings it was created with", url, ErrIdentity, what)
}

// difference names each setting that differs, with its old and its new value.
func difference(have, want map[string]string) (out []string) {
	names := maps.Clone(have)
	if names == nil {
		names = map[string]string{}
	}
	maps.Copy(names, want)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if have[name] != want[name] {
			out = append(out, fmt.Sprintf("%s was %q and is %q", name, have[name], want[name]))
		}
	}
	return out
}

func hashSettings(settings map[string]string) string {
	data, err := json.Marshal(settings) // with ascending keys
	if err != nil || len(settings) == 0 {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
