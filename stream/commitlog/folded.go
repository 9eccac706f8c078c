package commitlog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/rows"
)

// foldedFormat is the version of the documents of folded blocks that are written. Readers know every version from 1 to
// this one. Version 2 names objects by their SHA-256, version 3 says which table an object has rows of, version 4 which
// orders count no more. Format page: docs/format/manifest.md.
const foldedFormat = 4

// removalFoldedFormat is the first version whose programs note which merged objects they remove.
const removalFoldedFormat = 2

// folded is the document of a folded block: it says which row objects a block of 64 manifests names that is not merged
// because its objects are large. It is created once, before the boundary passes the block, and says nothing that the
// manifests do not say.
type folded struct {
	Format  int            `json:"format"`
	Shard   int            `json:"shard"`
	From    int64          `json:"from"`    // the first manifest of the block
	To      int64          `json:"to"`      // the last
	Windows []foldedWindow `json:"windows"` // those with rows, oldest first
	// Horizons are those manifests' whose horizon of orders is later than that of the one before, oldest first. The
	// first is that of manifest From, unless that has none.
	Horizons []foldedHorizon `json:"order_horizons,omitempty"`
}

// foldedHorizon is Manifest.OrderHorizon.
type foldedHorizon struct {
	Seq     int64        `json:"seq"`
	Horizon rows.Horizon `json:"horizon"`
}

// horizonAt is the horizon of a manifest of the block.
func (f *folded) horizonAt(seq int64) (h rows.Horizon) {
	for _, at := range f.Horizons {
		if at.Seq <= seq {
			h = at.Horizon
		}
	}
	return h
}

// add enters what a manifest says.
func (f *folded) add(s *Segment) {
	if len(s.objects) > 0 {
		f.Windows = append(f.Windows, foldedWindow{Seq: s.From, Objects: s.objects})
	}
	if s.horizon > f.horizonAt(s.To) {
		f.Horizons = append(f.Horizons, foldedHorizon{Seq: s.To, Horizon: s.horizon})
	}
}

// foldedWindow is what a manifest says of its rows.
type foldedWindow struct {
	Seq     int64    `json:"seq"`
	Objects []Object `json:"objects"`
}

func foldedPrefix(shard int) string { return shardPrefix(shard) + "folded/" }

func foldedKey(shard int, from int64) string {
	return fmt.Sprintf("%s%020d.json", foldedPrefix(shard), from)
}

// parseFoldedKey is the inverse of foldedKey.
func parseFoldedKey(shard int, key string) (from int64, ok bool) {
	name := strings.TrimSuffix(strings.TrimPrefix(key, foldedPrefix(shard)), ".json")
	from, err := strconv.ParseInt(name, 10, 64)
	return from, err == nil && from > 0 && from == blockStart(1, from) && foldedKey(shard, from) == key
}

// readFolded reads the document of the folded block that begins at a manifest.
func readFolded(ctx context.Context, store sink.Store, shard int, from int64) (*folded, error) {
	key := foldedKey(shard, from)
	data, err := sink.ReadAll(ctx, store, key)
	if err != nil {
		return nil, err
	}
	f, err := decodeFolded(data, sink.PlaceOf(store, key))
	if err == nil && (f.Shard != shard || f.From != from) {
		err = fmt.Errorf("%w: it is that of shard %d from manifest %d", ErrDamaged, f.Shard, f.From)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return f, nil
}

// decodeFolded refuses what this version does not know.
func decodeFolded(data []byte, at seal.Place) (*folded, error) {
	f := &folded{}
	sealed, err := seal.Decode(data, at, f)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: folded block does not parse: %w", ErrDamaged, err)
	case f.Format < 1 || f.Format > foldedFormat:
		return nil, fmt.Errorf("folded block has format %d, this version reads 1 to %d: it was written by another "+
			"release", f.Format, foldedFormat)
	case !sealed:
		return nil, fmt.Errorf("%w: folded block from manifest %d of shard %d has no checksum", ErrDamaged, f.From,
			f.Shard)
	}
	return f, f.check()
}

// check verifies what all readers rely on.
func (f *folded) check() error {
	if f.Shard < 0 || f.From < 1 || f.From != blockStart(1, f.From) || f.To != f.From+compactionFanIn-1 {
		return fmt.Errorf("%w: shard %d has no block from manifest %d to %d", ErrDamaged, f.Shard, f.From, f.To)
	}
	last := f.From - 1
	for _, w := range f.Windows {
		if w.Seq <= last || w.Seq > f.To || len(w.Objects) == 0 {
			return fmt.Errorf("%w: folded block has window %d with %d objects, after window %d", ErrDamaged, w.Seq,
				len(w.Objects), last)
		}
		last = w.Seq
		for _, o := range w.Objects {
			if seq, _, ok := parseRowKey(f.Shard, o.Key); !ok || seq != w.Seq || o.Rows < 0 || o.Bytes < 0 {
				return fmt.Errorf("%w: window %d of a folded block names object %q with %d rows", ErrDamaged, w.Seq,
					o.Key, o.Rows)
			}
		}
		if err := checkTables(w.Objects); err != nil {
			return fmt.Errorf("%w: window %d of a folded block: %w", ErrDamaged, w.Seq, err)
		}
	}
	var before foldedHorizon
	for _, h := range f.Horizons {
		if h.Seq < f.From || h.Seq > f.To || h.Seq <= before.Seq || h.Horizon <= before.Horizon {
			return fmt.Errorf("%w: folded block has the horizon %d of manifest %d, after %d of %d", ErrDamaged,
				h.Horizon, h.Seq, before.Horizon, before.Seq)
		}
		before = h
	}
	return nil
}

// create creates the document, unless there is one.
func (f *folded) create(ctx context.Context, store sink.Store) error {
	f.Format = foldedFormat
	err := f.check()
	if err != nil {
		return err
	}
	data, err := seal.JSON(f, sink.PlaceOf(store, foldedKey(f.Shard, f.From)))
	if err != nil {
		return fmt.Errorf("encode a folded block: %w", err)
	}
	if err := store.Create(ctx, foldedKey(f.Shard, f.From), data); err != nil && !errors.Is(err, sink.ErrExists) {
		return err
	}
	return nil
}
