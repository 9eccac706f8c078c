package commitlog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/audit"
)

// ErrResharded: the store may not be worked on because of a change of the number of shards.
var ErrResharded = errors.New("cannot be worked on because of a change of the number of shards")

// reshardFormat is the version of Reshard documents. Format page: docs/format/store.md.
const reshardFormat = 1

const (
	// reshardPrefix begins the keys of what stores know of a change of the number of shards.
	reshardPrefix = "reshard/"
	// reshardIntoKey names the document in the store that was left, reshardFromKey that in the store that is
	// filled. A store may have both: it was filled by one change, and left by the next.
	reshardIntoKey = reshardPrefix + "into.json"
	reshardFromKey = reshardPrefix + "from.json"
)

// Reshard is what two stores know of a change of the number of shards: the pipeline leaves the store From, and
// the store Into is filled from it. No worker may run on From as long as it has this document, nor on Into
// before Done.
type Reshard struct {
	Format int `json:"format"`
	// From and Into are the stores' URLs, and FromID is the id of the pipeline in From.
	From   string `json:"from"`
	FromID string `json:"from_id"`
	Into   string `json:"into"`
	Shards int    `json:"shards"` // of Into
	// Former are the numbers of shards before: records in topics that went along were placed by them.
	Former []int `json:"former_shards,omitempty"`
	// Attempt identifies the attempt that fills Into. An attempt that another has superseded cannot set Done.
	Attempt string `json:"attempt,omitempty"`
	// Remap: it is no change of the number of shards, but one of the mapping. Groups are the consumer groups of From.
	Remap  bool     `json:"remap,omitempty"`
	Groups []string `json:"groups,omitempty"`
	// Done, in Into: the store is complete.
	Done  bool      `json:"done,omitempty"`
	Began time.Time `json:"began"`
}

// isSameChange reports whether two documents describe one change of the number of shards.
func (r *Reshard) isSameChange(other *Reshard) bool {
	return r.FromID == other.FromID && r.Into == other.Into && r.Shards == other.Shards
}

// LoadReshards returns what a store knows of changes of the number of shards: of the one that left it, and of
// the one that fills or has filled it; nil for none.
func LoadReshards(ctx context.Context, store sink.Store) (into, from *Reshard, err error) {
	if into, _, err = loadReshard(ctx, store, reshardIntoKey); err != nil {
		return nil, nil, err
	}
	from, _, err = loadReshard(ctx, store, reshardFromKey)
	return into, from, err
}

// FormerShards returns the numbers of shards that the pipeline of a store had before.
func FormerShards(ctx context.Context, store sink.Store) ([]int, error) {
	_, from, err := LoadReshards(ctx, store)
	if err != nil || from == nil {
		return nil, err
	}
	return from.Former, nil
}

// Continues returns the id of the pipeline that the one of a store is with another number of shards, or with another
// mapping, "" for none.
func Continues(ctx context.Context, store sink.Store) (string, error) {
	_, from, err := LoadReshards(ctx, store)
	if err != nil || from == nil || !from.Done {
		return "", err
	}
	return from.FromID, nil
}

func loadReshard(ctx context.Context, store sink.Store, key string) (*Reshard, []byte, error) {
	data, err := sink.ReadAll(ctx, store, key)
	if errors.Is(err, sink.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var r Reshard
	sealed, err := seal.Decode(data, sink.PlaceOf(store, key), &r)
	if err == nil && (!sealed || r.Format != reshardFormat) {
		err = fmt.Errorf("format %d, this version reads %d, with a checksum", r.Format, reshardFormat)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s in %s: %w: %w", key, store.URL(), sink.ErrDamaged, err)
	}
	return &r, data, nil
}

// CheckReshard returns ErrResharded if no worker may run on the store.
func CheckReshard(ctx context.Context, store sink.Store) error {
	into, from, err := LoadReshards(ctx, store)
	switch {
	case err != nil:
		return err
	case into != nil && !into.Remap:
		return fmt.Errorf("store %s %w: 'giantstream reshard' has begun to write it to %s, with %d shards. Run that "+
			"command until it is complete, and start workers with that store; or take it back with --abort",
			store.URL(), ErrResharded, into.Into, into.Shards)
	case from != nil && !from.Done && !from.Remap:
		return fmt.Errorf("store %s %w: 'giantstream reshard' fills it from %s, and has not come to its end. Run that "+
			"command again, or take it back with --abort", store.URL(), ErrResharded, from.From)
	}
	return nil
}

// CloseFor notes in the store that is left that no worker may run on it any more. ErrResharded if it is left for
// another one already.
func (r *Reshard) CloseFor(ctx context.Context, store sink.Store) error {
	have, _, err := loadReshard(ctx, store, reshardIntoKey)
	if err != nil {
		return err
	}
	if have == nil {
		doc := *r
		doc.Format, doc.Attempt, doc.Done = reshardFormat, "", false
		data, err := seal.JSON(doc, sink.PlaceOf(store, reshardIntoKey))
		if err == nil {
			err = store.Create(ctx, reshardIntoKey, data)
		}
		if !errors.Is(err, sink.ErrExists) {
			return err
		}
		if have, _, err = loadReshard(ctx, store, reshardIntoKey); err != nil {
			return err
		}
	}
	if have != nil && !have.isSameChange(r) {
		return fmt.Errorf("store %s %w: it is being written to %s with %d shards already. Name that store and that "+
			"number, or take it back with --abort", store.URL(), ErrResharded, have.Into, have.Shards)
	}
	return nil
}

// BeginAttempt notes in the store that is filled that this attempt fills it. From now on no other attempt can
// complete it. It returns true if the store is complete.
func (r *Reshard) BeginAttempt(ctx context.Context, store sink.Store) (complete bool, err error) {
	have, data, err := loadReshard(ctx, store, reshardFromKey)
	switch {
	case err != nil:
		return false, err
	case have != nil && !have.isSameChange(r):
		return false, fmt.Errorf("store %s %w: it is filled from %s with %d shards", store.URL(), ErrResharded,
			have.From, have.Shards)
	case have != nil && have.Done:
		return true, nil
	case have == nil:
		for info, err := range sink.Objects(ctx, store) {
			if err != nil {
				return false, err
			}
			return false, fmt.Errorf("store %s is not empty: it has %s. Name an empty folder or an unused prefix",
				store.URL(), info.Key)
		}
	}
	r.Format, r.Attempt, r.Done = reshardFormat, rand.Text(), false
	return false, r.replace(ctx, store, data)
}

// Complete notes in the store that it is complete. ErrResharded if another attempt has begun meanwhile.
func (r *Reshard) Complete(ctx context.Context, store sink.Store) error {
	have, data, err := loadReshard(ctx, store, reshardFromKey)
	if err != nil {
		return err
	}
	if have == nil || have.Attempt != r.Attempt {
		return fmt.Errorf("store %s %w: another 'giantstream reshard' has begun to fill it meanwhile", store.URL(),
			ErrResharded)
	}
	r.Done = true
	return r.replace(ctx, store, data)
}

func (r *Reshard) replace(ctx context.Context, store sink.Store, old []byte) error {
	data, err := seal.JSON(r, sink.PlaceOf(store, reshardFromKey))
	if err != nil {
		return err
	}
	if err := sink.Swap(ctx, store, reshardFromKey, old, data); err != nil {
		return fmt.Errorf("note in %s that it is filled: %w", store.URL(), err)
	}
	return nil
}

// Empty removes everything from a store that is being filled, but for what says so.
func (r *Reshard) Empty(ctx context.Context, store sink.Store) error {
	var keys []string
	for info, err := range sink.Objects(ctx, store) {
		if err != nil {
			return err
		}
		if info.Key != reshardFromKey {
			keys = append(keys, info.Key)
		}
	}
	for _, key := range keys {
		if err := store.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// AbortReshard takes back a change of the number of shards that is not complete: workers may run on from again.
func AbortReshard(ctx context.Context, from, into sink.Store) error {
	left, _, err := LoadReshards(ctx, from)
	if err != nil {
		return err
	}
	_, filled, err := LoadReshards(ctx, into)
	switch {
	case err != nil:
		return err
	case left == nil && filled == nil:
		return fmt.Errorf("store %s is not left by a change of the number of shards", from.URL())
	case left != nil && left.Into != into.URL():
		return fmt.Errorf("store %s is being written to %s, not to %s", from.URL(), left.Into, into.URL())
	case filled != nil && filled.Done:
		return fmt.Errorf("store %s is complete, and workers may have run on it: it cannot be taken back. If none "+
			"has, remove it and then the object %s in %s", into.URL(), reshardIntoKey, from.URL())
	case filled != nil && filled.From != from.URL():
		return fmt.Errorf("store %s is being filled from %s, not from %s", into.URL(), filled.From, from.URL())
	case filled != nil:
		// From here on no other attempt can complete it.
		if _, err := filled.BeginAttempt(ctx, into); err != nil {
			return err
		}
		if err := filled.Empty(ctx, into); err != nil {
			return err
		}
		if err := into.Delete(ctx, reshardFromKey); err != nil {
			return err
		}
	}
	return from.Delete(ctx, reshardIntoKey)
}

// RemoveLeft removes the objects of a store that was left, once the other one is complete. What says that it was left
// goes last. Files below local/ or one of the prefixes of inUse are none of its objects: they are kept.
func RemoveLeft(ctx context.Context, from, into sink.Store, inUse []string) (removed, kept int, err error) {
	left, _, err := LoadReshards(ctx, from)
	if err != nil {
		return 0, 0, err
	}
	_, filled, err := LoadReshards(ctx, into)
	if err != nil {
		return 0, 0, err
	}
	if left == nil || filled == nil || !filled.Done || !filled.isSameChange(left) {
		return 0, 0, fmt.Errorf("store %s was not left for %s, or that one is not complete: nothing was removed",
			from.URL(), into.URL())
	}
	inUse = append(slices.Clone(inUse), sink.Local)
	var keys []string
	for info, err := range from.List(ctx, "", "") {
		if err != nil {
			return 0, 0, err
		}
		switch {
		case slices.ContainsFunc(inUse, func(prefix string) bool { return strings.HasPrefix(info.Key, prefix) }):
			kept++
		case info.Key != reshardIntoKey:
			keys = append(keys, info.Key)
		}
	}
	for _, key := range append(keys, reshardIntoKey) {
		if err := from.Delete(ctx, key); err != nil {
			return removed, kept, err
		}
		removed++
	}
	return removed, kept, nil
}

// AuditReshard checks the documents of changes of the number of shards.
func AuditReshard(ctx context.Context, a *audit.Audit) error {
	for _, key := range []string{reshardIntoKey, reshardFromKey} {
		if !a.Has(key) {
			continue
		}
		_, _, err := loadReshard(ctx, a.Store, key)
		if err == nil {
			a.Document(key, true)
			continue
		}
		if !audit.IsDamage(err) {
			return err
		}
		a.Claim(key)
		if err := a.Found(ctx, audit.Finding{Kind: audit.Derived, Object: key, What: err.Error(),
			Lost: "no worker can start",
			Do: "If no change of the number of shards is under way and this is the store " +
				"that the pipeline is to run on, remove this object."}, "", nil); err != nil {
			return err
		}
	}
	return nil
}
