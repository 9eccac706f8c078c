package iceberg

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/apache/iceberg-go/catalog/rest"
	"github.com/apache/iceberg-go/table"

	"giantstream/sink/vectordb"
)

// attempt is a commit that is on its way. It stays as it is until its outcome is known.
type attempt struct {
	name    string // unique
	carrier int64  // the snapshot with the state
	based   int64  // the one with the state before, 0 for none
	state   state
	// changes are those that it commits, by serial, and moves what they mean for Places.
	changes map[int64]map[string]*change
	staged  *stage
	moves   map[int64]moves

	requirements []table.Requirement
	updates      []table.Update

	parents map[int64]int64 // of the snapshots that it adds, by serial

	keys      []string // of what it has written
	manifests int
	// unsure: it was sent, and no answer came.
	unsure bool
}

// moves are changes of Places.
type moves struct {
	gone []string
	set  map[string]Place
}

// commit makes all that was handed over durable.
func (x *Index) commit(ctx context.Context) error {
	for {
		if x.pending == nil {
			a, err := x.prepare(ctx)
			if err != nil {
				x.discard(ctx, a)
				return err
			}
			x.pending = a
		}
		done, err := x.send(ctx, x.pending)
		if done || err != nil {
			return err
		}
	}
}

// send sends an attempt to the catalog. It is false if the table has changed, without harm.
func (x *Index) send(ctx context.Context, a *attempt) (bool, error) {
	meta, _, err := x.catalog.CommitTable(ctx, x.opts.Table, a.requirements, a.updates)
	switch {
	case err == nil && refs(meta)[progressTag].SnapshotID == a.carrier:
		return true, x.committed(a, meta)
	case err == nil || errors.Is(err, table.ErrCommitFailed):
		return x.conflict(ctx, a)
	case errors.Is(err, rest.ErrBadRequest):
		if !a.unsure {
			x.discard(ctx, a)
		}
		x.withdraw(a)
		return false, classify(err)
	}
	a.unsure = true
	return false, err // it may have succeeded, or may yet: it is sent again as it is
}

// conflict finds out why the catalog has refused an attempt.
func (x *Index) conflict(ctx context.Context, a *attempt) (bool, error) {
	t, err := x.catalog.LoadTable(ctx, x.opts.Table)
	if err != nil {
		return false, err
	}
	switch meta := t.Metadata(); refs(meta)[progressTag].SnapshotID {
	case a.carrier: // its own success, whose answer was lost
		return true, x.committed(a, meta)
	case a.based:
		// Nobody else has committed rows: the table was maintained, and so the attempt can never succeed.
		x.discard(ctx, a)
		x.withdraw(a)
		return false, x.adopt(meta)
	default:
		// Its files stay: it may have succeeded before the other process came.
		return false, vectordb.ErrTakenOver
	}
}

// committed takes note of a success.
func (x *Index) committed(a *attempt, meta table.Metadata) error {
	x.pending, x.meta, x.saved = nil, meta, a.state
	for serial, parent := range a.parents {
		at, ok := x.indexed[serial]
		delete(x.indexed, serial) // what fails here is read from the table before it is needed
		if !ok || at != parent {
			continue
		}
		if m := a.moves[serial]; len(m.gone)+len(m.set) > 0 {
			if err := x.opts.Places.Change(serial, m.gone, m.set); err != nil {
				return err
			}
		}
		x.indexed[serial] = x.saved.Heads[serial]
	}
	return nil
}

// withdraw gives up an attempt that can never succeed, and takes its changes back.
func (x *Index) withdraw(a *attempt) {
	x.pending = nil
	for serial, changes := range a.changes {
		newer := x.buffers[serial]
		if newer == nil {
			newer = map[string]*change{}
		}
		for id, c := range changes {
			if n := newer[id]; n != nil {
				x.size -= n.bytes
				c = n.mergedWith(c)
			}
			newer[id] = c
			x.size += c.bytes
		}
		x.buffers[serial] = newer
	}
	if a.staged != nil {
		x.staged = a.staged // nothing is staged while an attempt is on its way
	}
	x.touch()
}

// discard deletes the files of an attempt that no snapshot names. What stays because this fails is an orphan.
func (x *Index) discard(ctx context.Context, a *attempt) {
	for _, key := range a.keys {
		if err := x.store.Delete(ctx, key); err != nil {
			return
		}
	}
}

func newName() string { return strings.ToLower(rand.Text()) }

// newID returns the id of a snapshot.
func newID() int64 {
	var b [8]byte
	rand.Read(b[:]) //nolint:errcheck // it never fails
	return int64(binary.LittleEndian.Uint64(b[:])>>1) | 1
}

// prepare writes all files of an attempt. It returns the attempt with an error, too.
func (x *Index) prepare(ctx context.Context) (*attempt, error) {
	a := &attempt{name: newName(), carrier: newID(), state: x.next.clone(), moves: map[int64]moves{},
		parents: map[int64]int64{}, based: refs(x.meta)[progressTag].SnapshotID}
	a.state.Heads = map[int64]int64{}
	a.require(x.meta, progressTag)
	sequence := x.meta.LastSequenceNumber()
	before, served := x.saved, a.state.Catalog.Served
	now := max(time.Now().UnixMilli(), x.meta.LastUpdatedMillis())
	branches := map[string]int64{}
	// The served table comes last: its snapshot has the heads of the others.
	tables := slices.Clone(a.state.Catalog.Tables)
	slices.SortStableFunc(tables, func(t, u vectordb.Table) int {
		return cmp.Compare(order(t.Serial == served), order(u.Serial == served))
	})
	if served == 0 {
		tables = append(tables, vectordb.Table{}) // main is empty
	}
	for _, t := range tables {
		s := &snapshot{id: newID(), parent: before.Heads[t.Serial]}
		if t.Serial == served {
			s.id = a.carrier
		} else if len(x.buffers[t.Serial]) == 0 && !x.staged.belongsTo(t.Serial) {
			if s.parent != 0 {
				a.state.Heads[t.Serial], branches[a.state.ref(t)] = s.parent, s.parent
			}
			continue
		}
		if err := x.fill(ctx, a, t, s); err != nil {
			return a, err
		}
		sequence++
		s.sequence = sequence
		if err := x.write(ctx, a, s); err != nil {
			return a, err
		}
		a.state.Heads[t.Serial], branches[a.state.ref(t)], a.parents[t.Serial] = s.id, s.id, s.parent
		if err := x.add(a, s, now); err != nil {
			return a, err
		}
	}
	a.point(x.meta, before, branches)
	// They belong to the attempt now. What comes later is for the next one.
	a.changes, x.buffers, x.size, x.since = x.buffers, map[int64]map[string]*change{}, 0, time.Time{}
	a.staged, x.staged = x.staged, nil
	return a, nil
}

func order(last bool) int {
	if last {
		return 1
	}
	return 0
}

// add makes the snapshot a part of the attempt's request.
func (x *Index) add(a *attempt, s *snapshot, now int64) error {
	out := table.Snapshot{SnapshotID: s.id, SequenceNumber: s.sequence, TimestampMs: now,
		ManifestList: x.path(s.list(a))}
	if s.parent != 0 {
		out.ParentSnapshotID = &s.parent
	}
	schema := x.meta.CurrentSchema().ID
	out.SchemaID = &schema
	out.Summary = s.summary(x.meta.SnapshotByID(s.parent))
	if s.id == a.carrier {
		written := a.state.clone()
		delete(written.Heads, written.Catalog.Served)
		text, err := written.encode()
		if err != nil {
			return err
		}
		maps.Copy(out.Summary.Properties, x.kind.summary(written))
		out.Summary.Properties[keyState] = text
	}
	a.updates = append(a.updates, table.NewAddSnapshotUpdate(&out))
	return nil
}

// point sets the refs: those of branches, and the tag. It removes what is left of tables that are gone.
func (a *attempt) point(meta table.Metadata, before state, branches map[string]int64) {
	for _, name := range slices.Sorted(maps.Keys(branches)) {
		if ref, ok := refs(meta)[name]; ok && ref.SnapshotID == branches[name] {
			continue
		}
		a.require(meta, name)
		a.updates = append(a.updates, table.NewSetSnapshotRefUpdate(name, branches[name], table.BranchRef, 0, 0, 0))
	}
	a.updates = append(a.updates, table.NewSetSnapshotRefUpdate(progressTag, a.carrier, table.TagRef, 0, 0, 0))
	for _, t := range before.Catalog.Tables {
		name := before.ref(t)
		if _, stays := branches[name]; stays || name == table.MainBranch {
			continue
		}
		if _, exists := refs(meta)[name]; exists {
			a.require(meta, name)
			a.updates = append(a.updates, table.NewRemoveSnapshotRefUpdate(name))
		}
	}
}

// require makes the attempt fail if a ref is not what it is now.
func (a *attempt) require(meta table.Metadata, name string) {
	if a.requirements == nil {
		a.requirements = []table.Requirement{table.AssertTableUUID(meta.TableUUID())}
	}
	var id *int64
	if ref, ok := refs(meta)[name]; ok {
		id = &ref.SnapshotID
	}
	a.requirements = append(a.requirements, table.AssertRefSnapshotID(name, id))
}

// refs are the refs of a table by name.
func refs(meta table.Metadata) map[string]table.SnapshotRef { return maps.Collect(meta.Refs()) }

// fill writes the changes of a table, and takes over the manifests of the snapshot before.
func (x *Index) fill(ctx context.Context, a *attempt, t vectordb.Table, s *snapshot) (err error) {
	if t.Serial != 0 {
		if s.manifests, err = x.manifests(ctx, s.parent); err != nil {
			return err
		}
	}
	changes := x.sorted(t.Serial)
	if len(changes) == 0 && !x.staged.belongsTo(t.Serial) {
		return nil
	}
	if err := x.index(ctx, t.Serial); err != nil {
		return err
	}
	if changes, err = x.complete(ctx, t.Serial, changes); err != nil {
		return err
	}
	m := moves{set: map[string]Place{}}
	var gone []Place
	if x.staged.belongsTo(t.Serial) {
		s.added, gone = slices.Clone(x.staged.files), slices.Clone(x.staged.gone)
		maps.Copy(m.set, x.staged.places)
	}
	for _, c := range changes {
		if p, ok := m.set[c.node]; ok {
			gone = append(gone, p)
			delete(m.set, c.node)
		}
	}
	for _, nodes := range []iter.Seq[string]{nodes(changes), maps.Keys(m.set)} {
		for node := range nodes {
			p, ok, err := x.opts.Places.Get(t.Serial, node)
			if err != nil {
				return err
			}
			if ok {
				gone, m.gone = append(gone, p), append(m.gone, node)
			}
		}
	}
	prefix := fmt.Sprintf("g%d_%d/%s", t.Generation, t.Serial, a.name)
	if upserts := live(changes); len(upserts) > 0 {
		a.keys = append(a.keys, "data/"+prefix+".parquet")
		f, places, err := x.putRows(ctx, prefix+".parquet", upserts)
		if err != nil {
			return err
		}
		s.added = append(s.added, f)
		maps.Copy(m.set, places)
	}
	if len(gone) > 0 {
		a.keys = append(a.keys, "data/"+prefix+"-deletes.parquet")
		f, err := x.putDeletions(ctx, prefix+"-deletes.parquet", gone)
		if err != nil {
			return err
		}
		s.deleted = append(s.deleted, f)
	}
	a.moves[t.Serial] = m
	return nil
}

// sorted returns the changes of a table that are not committed, in the order of their nodes.
func (x *Index) sorted(serial int64) []*change {
	return slices.SortedFunc(maps.Values(x.buffers[serial]), func(c, d *change) int {
		return strings.Compare(c.node, d.node)
	})
}

// live returns the changes that are no deletions.
func live(changes []*change) []*change {
	return slices.DeleteFunc(slices.Clone(changes), func(c *change) bool { return c.deleted })
}

func nodes(changes []*change) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, c := range changes {
			if !yield(c.node) {
				return
			}
		}
	}
}
