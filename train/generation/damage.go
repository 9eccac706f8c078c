package generation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	artifacts "giantstream/internal/artifact"
	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/parquetio"
	"giantstream/train/encoders"
)

// ErrDamaged: an object of a generation is missing, or not what its build left. A generation is derived from
// the rows, so the process that finds the damage marks it (MarkDamaged) and uses the generation before, and the next
// build makes another one.
var ErrDamaged = errors.New("generation is damaged")

// File describes an object of a generation.
type File struct {
	Bytes int64 `json:"bytes"`
	sink.Checksum
}

// Refs yields the objects of a complete generation and what their bytes must be, but for the document itself.
// Documents of format 1 know only the parts.
func (d *Doc) Refs(yield func(sink.Ref) bool) {
	for _, parts := range [][]sink.Part{d.Dataset, d.Embeddings} {
		for _, p := range parts {
			if !yield(p.Ref()) {
				return
			}
		}
	}
	for name := range d.Files {
		if !yield(d.ref(name)) {
			return
		}
	}
}

func (d *Doc) ref(name string) sink.Ref {
	f := d.Files[name]
	return sink.Ref{Key: Prefix(d.Generation) + name, Bytes: f.Bytes, Checksum: f.Checksum}
}

// open opens an object of a generation by its name, verified if the generation is complete.
func (d *Doc) open(ctx context.Context, store sink.Store, name string) (sink.Object, error) {
	if d.Format == 1 || !d.Complete() { // names no files
		return store.Open(ctx, Prefix(d.Generation)+name)
	}
	if _, ok := d.Files[name]; !ok {
		return nil, fmt.Errorf("%w: %s does not name %s", sink.ErrDamaged, docKey(d.Generation), name)
	}
	return sink.OpenVerified(ctx, store, d.ref(name))
}

// verifyUnder verifies the generation's objects whose name begins with a prefix.
func (d *Doc) verifyUnder(ctx context.Context, store sink.Store, prefix string) error {
	for name := range d.Files {
		if strings.HasPrefix(name, prefix) {
			if err := sink.Verify(ctx, store, d.ref(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// noteFiles lists what the build has left beside the Parquet parts.
func (d *Doc) noteFiles(ctx context.Context, store sink.Store) error {
	prefix, parts := Prefix(d.Generation), map[string]bool{docKey(d.Generation): true}
	d.Files = nil
	for ref := range d.Refs {
		parts[ref.Key] = true
	}
	files := map[string]File{}
	for info, err := range store.List(ctx, prefix, "") {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(info.Key, prefix)
		switch {
		case parts[info.Key], strings.HasPrefix(name, TasksFolder):
			continue
		case strings.HasPrefix(name, "dataset/"), strings.HasPrefix(name, "embeddings/"):
			// Left by a run of this build that divided the nodes in another way.
			if err := store.Delete(ctx, info.Key); err != nil {
				return err
			}
			continue
		}
		ref, err := sink.RefOf(ctx, store, info.Key)
		if err != nil {
			return err
		}
		files[name] = File{ref.Bytes, ref.Checksum}
	}
	d.Files = files
	return nil
}

// IsDamage reports whether an error says that an object is missing or damaged, and not that the store cannot
// be reached, or that another release wrote the object.
func IsDamage(err error) bool {
	for _, is := range []error{sink.ErrDamaged, sink.ErrNotFound, seal.ErrBroken, artifacts.ErrCorrupt,
		parquetio.ErrCorrupt, encoders.ErrCorrupt, encoders.ErrMismatch} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// damaged makes an error of reading a generation's object one of the generation.
func damaged(g int64, err error) error {
	if !IsDamage(err) {
		return err
	}
	return fmt.Errorf("generation %d: %w: %w", g, ErrDamaged, err)
}

// damageFormat is the version of the mark's JSON.
const damageFormat = 1

// Damage is the mark of a damaged generation, generations/<g>/damaged.json.
type Damage struct {
	Format     int       `json:"format"`
	Generation int64     `json:"generation"`
	Reason     string    `json:"reason"`
	Found      time.Time `json:"found"`
}

// DamageKey names the mark of generation g.
func DamageKey(g int64) string { return Prefix(g) + "damaged.json" }

// MarkDamaged marks a generation as damaged, for all processes: it is not served any more, and a new one is
// due. Any process may do so at any time, since a wrong mark costs a build and no data. The first reason
// stays. A generation that has been removed meanwhile is not marked, which marked reports.
func MarkDamaged(ctx context.Context, store sink.Store, g int64, reason error, now time.Time) (marked bool, err error) {
	there, err := sink.Exists(ctx, store, docKey(g))
	if err != nil || !there {
		return false, err
	}
	err = mark(ctx, store, g, reason, now)
	return err == nil, err
}

// mark creates the mark of a damaged generation, unless it has one.
func mark(ctx context.Context, store sink.Store, g int64, reason error, now time.Time) error {
	data, err := seal.JSON(Damage{damageFormat, g, reason.Error(), now.UTC()}, sink.PlaceOf(store, DamageKey(g)))
	if err != nil {
		return err
	}
	if err = store.Create(ctx, DamageKey(g), data); errors.Is(err, sink.ErrExists) {
		return nil
	}
	return err
}

// Damaged returns the damage of a generation, nil for none: its mark, or a document that cannot be read.
func Damaged(ctx context.Context, store sink.Store, g int64) (*Damage, error) {
	_, damage, err := loadMarked(ctx, store, g)
	return damage, err
}

// loadMarked reads a generation's document and its mark. Without an error, one of the two is not nil.
func loadMarked(ctx context.Context, store sink.Store, g int64) (*Doc, *Damage, error) {
	doc, err := Load(ctx, store, g)
	if errors.Is(err, ErrDamaged) {
		return nil, &Damage{Format: damageFormat, Generation: g, Reason: err.Error()}, nil
	}
	if err != nil && !errors.Is(err, ErrNone) {
		return nil, nil, err
	}
	data, noMark := sink.ReadAll(ctx, store, DamageKey(g))
	if errors.Is(noMark, sink.ErrNotFound) {
		return doc, nil, err
	}
	if noMark != nil {
		return nil, nil, noMark
	}
	damage := &Damage{}
	if _, err := seal.Decode(data, sink.PlaceOf(store, DamageKey(g)), damage); err != nil {
		damage = &Damage{Reason: "its mark " + DamageKey(g) + " cannot be read"} // a mark all the same
	}
	damage.Generation = g
	return doc, damage, nil
}

// Missing returns objects of the current generation that are not in the store with their size, among at most
// limit objects: a quick look, which reads none of them.
func Missing(ctx context.Context, store sink.Store, limit int) (missing []string, err error) {
	doc, err := Current(ctx, store)
	if errors.Is(err, ErrNone) || errors.Is(err, ErrChoiceDamaged) { // none is known to be the current one
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	refs := slices.SortedFunc(doc.Refs, func(x, y sink.Ref) int { return strings.Compare(x.Key, y.Key) })
	for _, ref := range refs[:min(limit, len(refs))] {
		object, err := store.Open(ctx, ref.Key)
		switch {
		case errors.Is(err, sink.ErrNotFound):
			missing = append(missing, ref.Key)
			continue
		case err != nil:
			return nil, err
		case object.Size() != ref.Bytes:
			missing = append(missing, ref.Key)
		}
		if err := object.Close(); err != nil {
			return nil, err
		}
	}
	return missing, nil
}
