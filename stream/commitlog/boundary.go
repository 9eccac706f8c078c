package commitlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"giantstream/internal/seal"
	"giantstream/sink"
)

// boundaryFormat is the version of the boundary's JSON. Format page: docs/format/manifest.md.
const boundaryFormat = 1

// ErrRemoved: what a reader asks for lies behind the boundary of the log. It was removed on purpose.
var ErrRemoved = errors.New("manifest was removed behind the boundary of the commit log")

// Boundary says up to which manifest a shard's log was folded: what readers need of manifests 1 to Seq is in merged
// blocks and in folded ones, and the manifests are removed, or may be at any time. An object under the number of a
// manifest up to Seq means nothing: a late worker may have created it after the removal. See the package comment,
// "Removal of manifests".
//
// The boundary only ascends, and manifest Seq+1 always exists.
type Boundary struct {
	Format int   `json:"format"`
	Shard  int   `json:"shard"`
	Seq    int64 `json:"seq"`
	// Digest is that of manifest Seq, which manifest Seq+1 names.
	Digest string `json:"digest"`
	// Committed is Manifest.Committed of manifest Seq.
	Committed *int64    `json:"rows_committed,omitempty"`
	Moved     time.Time `json:"moved"`

	stored []byte // the object, nil if there is none
}

func boundaryKey(shard int) string { return shardPrefix(shard) + "boundary.json" }

// ReadBoundary returns the boundary of a shard's log, the zero value for a log of which nothing was removed. A boundary
// that cannot be read is ErrDamaged: without it, nobody may believe a manifest.
func ReadBoundary(ctx context.Context, store sink.Store, shard int) (Boundary, error) {
	key := boundaryKey(shard)
	data, err := sink.ReadAll(ctx, store, key)
	if errors.Is(err, sink.ErrNotFound) {
		return Boundary{}, nil
	}
	if err != nil {
		return Boundary{}, fmt.Errorf("read the boundary of shard %d: %w", shard, err)
	}
	b, err := decodeBoundary(data, sink.PlaceOf(store, key))
	if err == nil && b.Shard != shard {
		err = fmt.Errorf("%w: it is that of shard %d", ErrDamaged, b.Shard)
	}
	if err != nil {
		return Boundary{}, fmt.Errorf("%s: %w (restore the object from a backup, or stop the pipeline and let "+
			"'giantstream verify --repair' write it again)", key, err)
	}
	return b, nil
}

// decodeBoundary refuses what this version does not know.
func decodeBoundary(data []byte, at seal.Place) (Boundary, error) {
	var b Boundary
	sealed, err := seal.Decode(data, at, &b)
	switch {
	case err != nil:
		return b, fmt.Errorf("%w: boundary does not parse: %w", ErrDamaged, err)
	case b.Format == groupBoundaryFormat:
		return b, fmt.Errorf("boundary of format %d was %w", b.Format, ErrGroupCommit)
	case b.Format != boundaryFormat:
		return b, fmt.Errorf("boundary has format %d, this version reads %d: it was written by another release",
			b.Format, boundaryFormat)
	case !sealed || b.Shard < 0 || b.Seq < 1 || b.Digest == "":
		return b, fmt.Errorf("%w: boundary of shard %d at manifest %d, digest %q, with a checksum: %t", ErrDamaged,
			b.Shard, b.Seq, b.Digest, sealed)
	}
	b.stored = data
	return b, nil
}

// move moves the boundary from where it was read, unless it has moved since: then the error is sink.ErrChanged. It is
// sink.ErrUnsupported on a store without compare-and-swap, where a late caller could move the boundary back.
func (b Boundary) move(ctx context.Context, store sink.Store, to Boundary) error {
	to.Format = boundaryFormat
	if to.Seq <= b.Seq {
		return fmt.Errorf("the boundary of shard %d is at manifest %d and does not go to %d", to.Shard, b.Seq, to.Seq)
	}
	data, err := seal.JSON(to, sink.PlaceOf(store, boundaryKey(to.Shard)))
	if err != nil {
		return fmt.Errorf("encode the boundary of shard %d: %w", to.Shard, err)
	}
	swap, ok := store.(sink.Replacer)
	if !ok {
		return fmt.Errorf("move the boundary of shard %d: %w", to.Shard, sink.ErrUnsupported)
	}
	if b.stored == nil {
		if err := store.Create(ctx, boundaryKey(to.Shard), data); errors.Is(err, sink.ErrExists) {
			return fmt.Errorf("move the boundary of shard %d: %w: %w", to.Shard, sink.ErrChanged, err)
		} else if err != nil {
			return fmt.Errorf("move the boundary of shard %d: %w", to.Shard, err)
		}
		return nil
	}
	if err := swap.Replace(ctx, boundaryKey(to.Shard), b.stored, data); err != nil {
		return fmt.Errorf("move the boundary of shard %d: %w", to.Shard, err)
	}
	return nil
}

// CheckCreated returns ErrRemoved if manifest seq lies behind the boundary. A process that has created or read a
// manifest trusts it only after this call: if the boundary is below a number now, nothing of that number was removed
// before.
func CheckCreated(ctx context.Context, store sink.Store, shard int, seq int64) error {
	b, err := ReadBoundary(ctx, store, shard)
	if err == nil && seq <= b.Seq {
		err = b.removed(shard, seq)
	}
	return err
}

func (b Boundary) removed(shard int, seq int64) error {
	return fmt.Errorf("%w: manifest %d of shard %d, the boundary is at %d", ErrRemoved, seq, shard, b.Seq)
}
