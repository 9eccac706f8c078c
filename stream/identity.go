package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"giantstream/sink"
)

// ErrIdentity: the store or the local state belongs to another pipeline.
var ErrIdentity = errors.New("belongs to another pipeline")

// IdentityFormat is the version of the store's layout.
const IdentityFormat = 1

// IdentityKey is where the identity lies in the store.
const IdentityKey = "pipeline.json"

// Identity is what can never change in the life of a store. It is written by
// the first run and compared by every later one.
type Identity struct {
	Format     int    `json:"format"`
	Name       string `json:"name"`
	Shards     int    `json:"shards"`
	Undirected bool   `json:"undirected"`
}

// EnsureIdentity writes the identity into an empty store, or compares it with
// what the store says. A zero Format means IdentityFormat. Of several workers
// that start at once one writes and the others compare.
func EnsureIdentity(ctx context.Context, store sink.Store, want Identity) error {
	if want.Format == 0 {
		want.Format = IdentityFormat
	}
	if want.Name == "" || want.Shards < 1 {
		return fmt.Errorf("identity needs a name and at least one shard, has %q and %d", want.Name, want.Shards)
	}
	have, err := LoadIdentity(ctx, store)
	if errors.Is(err, sink.ErrNotFound) {
		data, err := json.MarshalIndent(want, "", "  ")
		if err != nil {
			return fmt.Errorf("encode identity: %w", err)
		}
		if err := store.Create(ctx, IdentityKey, append(data, '\n')); err == nil {
			return nil
		} else if !errors.Is(err, sink.ErrExists) {
			return fmt.Errorf("claim the store: %w", err)
		}
		have, err = LoadIdentity(ctx, store)
		if err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	return have.compare(want, store.URL())
}

// LoadIdentity reads the store's identity; sink.ErrNotFound when nobody has
// claimed the store yet.
func LoadIdentity(ctx context.Context, store sink.Store) (Identity, error) {
	data, err := sink.ReadAll(ctx, store, IdentityKey)
	if err != nil {
		return Identity{}, fmt.Errorf("read the store's identity: %w", err)
	}
	var have Identity
	if err := json.Unmarshal(data, &have); err != nil {
		return Identity{}, fmt.Errorf("%s does not parse: %w", IdentityKey, err)
	}
	if have.Format != IdentityFormat {
		return Identity{}, fmt.Errorf("%s has format %d, this version reads %d: the store was made by another release",
			IdentityKey, have.Format, IdentityFormat)
	}
	return have, nil
}

func (have Identity) compare(want Identity, url string) error {
	var what string
	switch {
	case have == want:
		return nil
	case have.Name != want.Name:
		what = fmt.Sprintf("it is named %q, not %q", have.Name, want.Name)
	case have.Shards != want.Shards:
		what = fmt.Sprintf("it has %d shards, not %d; the number is fixed when a pipeline is created", have.Shards, want.Shards)
	default:
		what = fmt.Sprintf("undirected is %t there and %t here", have.Undirected, want.Undirected)
	}
	return fmt.Errorf("store %s %w: %s; use another store or the settings it was created with", url, ErrIdentity, what)
}
