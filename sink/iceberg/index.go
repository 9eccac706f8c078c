package iceberg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/apache/iceberg-go/table"

	"giantstream/sink"
	"giantstream/sink/vectordb"
)

// Options of an index.
type Options struct {
	// Catalog opens the catalog, which has the table.
	Catalog func(context.Context) (Catalog, error)
	// Table is its namespace and its name.
	Table table.Identifier
	// Location is where a new table is; "" for where the catalog puts it.
	Location string
	// Store opens the store that is rooted at the table's location.
	Store func(ctx context.Context, location string) (sink.Store, error)
	// Places are the rows' places.
	Places Places
	// Every is how long changes wait for others before they are committed, Bytes of how many changes at most.
	Every time.Duration
	Bytes int64
	// Attributes are columns of the table of embeddings.
	Attributes []vectordb.Attribute
	Log        *slog.Logger
}

// Index is a vectordb.Index in a table of Iceberg.
type Index struct {
	opts Options
	kind *kind

	mu       sync.Mutex
	catalog  Catalog
	store    sink.Store
	location string
	meta     table.Metadata
	saved    state // as it is in the table
	next     state // as it is with what was handed over since; without Heads
	// buffers are the changes that are not committed, by serial and node.
	buffers map[int64]map[string]*change
	size    int64
	since   time.Time // of the oldest; zero if there is nothing to commit
	staged  *stage
	pending *attempt
	columns []column // of the attributes

	// indexed are the snapshots that Places are right for, by serial.
	indexed map[int64]int64
	paths   []string
	numbers map[string]uint32
}

var (
	_ vectordb.Index      = (*Index)(nil)
	_ vectordb.Flusher    = (*Index)(nil)
	_ vectordb.Attributed = (*Index)(nil)
)

// New returns an index, which connects when it is opened.
func New(o Options) *Index { return newIndex(o, embeddings) }

func newIndex(o Options, k *kind) *Index {
	o.Bytes = cmp.Or(o.Bytes, 64<<20)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Index{opts: o, kind: k}
}

// Close implements vectordb.Index.
func (x *Index) Close() error { return nil }

// maxID bounds a node id: it is a bound of a file's column, and a key of Places.
const maxID = 32 << 10

// Check implements vectordb.Index.
func (x *Index) Check(nodeID string) error {
	switch {
	case !utf8.ValidString(nodeID):
		return errors.New("its id is no UTF-8")
	case len(nodeID) > maxID:
		return fmt.Errorf("its id has %d bytes; at most %d are taken", len(nodeID), maxID)
	}
	return nil
}

// Open implements vectordb.Index.
func (x *Index) Open(ctx context.Context) (vectordb.Saved, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var saved vectordb.Saved
	if x.catalog == nil {
		c, err := x.opts.Catalog(ctx)
		if err != nil {
			return saved, fmt.Errorf("open the catalog: %w", classify(err))
		}
		x.catalog = c
	}
	meta, err := x.load(ctx)
	if err == nil {
		meta, err = x.evolve(ctx, meta)
	}
	if err != nil {
		return saved, err
	}
	if err := x.kind.check(meta); err != nil {
		return saved, err
	}
	if err := x.findColumns(meta); err != nil {
		return saved, err
	}
	if location := strings.TrimRight(meta.Location(), "/"); x.store == nil || location != x.location {
		if x.store, err = x.opts.Store(ctx, location); err != nil {
			return saved, err
		}
		x.location = location
	}
	for _, t := range x.saved.Catalog.Tables {
		if err := x.opts.Places.Drop(t.Serial); err != nil {
			return saved, err
		}
	}
	x.pending, x.meta, x.paths, x.numbers = nil, meta, nil, map[string]uint32{}
	x.buffers, x.size, x.indexed, x.staged = map[int64]map[string]*change{}, 0, map[int64]int64{}, nil
	if err := x.restore(); err != nil {
		return saved, err
	}
	x.next = x.saved.clone()
	x.touch()
	err = x.commit(ctx)
	if errors.Is(err, vectordb.ErrTakenOver) {
		return saved, errors.New("another process has committed while the table was taken over")
	}
	return vectordb.Saved{Catalog: x.next.clone().Catalog, Progress: maps.Clone(x.next.Progress)}, err
}

// restore reads the state of the table.
func (x *Index) restore() error {
	tag, ok := refs(x.meta)[progressTag]
	if !ok {
		if _, used := refs(x.meta)[table.MainBranch]; used {
			return fmt.Errorf("%w: the table %s was written by another program (it has no tag %s). Name a table that "+
				"does not exist, and it is made", vectordb.ErrRefused, strings.Join(x.opts.Table, "."), progressTag)
		}
		x.saved = state{Progress: map[int]vectordb.Progress{}, Heads: map[int64]int64{}}
		return nil
	}
	s, err := readState(x.meta.SnapshotByID(tag.SnapshotID))
	if err != nil {
		return fmt.Errorf("%w: the snapshot %d: %w", vectordb.ErrRefused, tag.SnapshotID, err)
	}
	if s.Heads == nil {
		s.Heads = map[int64]int64{}
	}
	if s.Progress == nil {
		s.Progress = map[int]vectordb.Progress{}
	}
	s.Heads[s.Catalog.Served] = tag.SnapshotID
	x.saved = s
	if err := x.adopt(x.meta); err != nil {
		x.opts.Log.Warn("another program has changed the table, which is filled again from the beginning",
			"reason", err)
		x.abandon()
	}
	return nil
}

// abandon keeps what readers see, and makes the follower fill a new table.
func (x *Index) abandon() {
	s := &x.saved
	all := refs(x.meta)
	var tables []vectordb.Table
	for _, t := range s.Catalog.Tables {
		if ref, ok := all[s.ref(t)]; ok {
			tables, s.Heads[t.Serial] = append(tables, t), ref.SnapshotID
		} else {
			delete(s.Heads, t.Serial)
		}
	}
	if ref, ok := all[table.MainBranch]; ok {
		s.Heads[s.Catalog.Served] = ref.SnapshotID
	}
	s.Catalog.Tables, s.Catalog.TopicID = tables, "changed by another program"
}

// adopt takes over what maintenance has made of the table: other files of the same rows.
func (x *Index) adopt(meta table.Metadata) error {
	heads := maps.Clone(x.saved.Heads)
	for _, t := range append([]vectordb.Table{{}}, x.saved.Catalog.Tables...) {
		head, ok := heads[t.Serial]
		if !ok {
			continue
		}
		name := x.saved.ref(t)
		ref, ok := refs(meta)[name]
		if !ok {
			return fmt.Errorf("%w: the branch %s of the table is gone; start giantstream-iceberg again, and it fills "+
				"a new one", vectordb.ErrRefused, name)
		}
		for at := ref.SnapshotID; at != head; {
			s := meta.SnapshotByID(at)
			if s == nil {
				break // expired
			}
			if s.ParentSnapshotID == nil || s.Summary == nil || s.Summary.Operation != table.OpReplace {
				return fmt.Errorf("%w: another program has changed rows of the branch %s (snapshot %d); start "+
					"giantstream-iceberg again, and it fills a new one", vectordb.ErrRefused, name, at)
			}
			at = *s.ParentSnapshotID
		}
		heads[t.Serial] = ref.SnapshotID
	}
	x.meta, x.saved.Heads = meta, heads
	return nil
}

// touch notes that there is something to commit.
func (x *Index) touch() {
	if x.since.IsZero() {
		x.since = time.Now()
	}
}

// Save implements vectordb.Index.
func (x *Index) Save(ctx context.Context, c vectordb.Catalog) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !reflect.DeepEqual(c, x.next.Catalog) {
		x.next.Catalog = copied(c)
		x.touch()
	}
	return x.flush(ctx)
}

func copied(c vectordb.Catalog) vectordb.Catalog { return state{Catalog: c}.clone().Catalog }

// Create implements vectordb.Index. The branch comes with the first rows.
func (x *Index) Create(context.Context, vectordb.Table) error { return nil }

// Apply implements vectordb.Index: it holds changes until Flush, or until there are too many of them.
func (x *Index) Apply(ctx context.Context, b vectordb.Batch) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.size >= x.opts.Bytes {
		if err := x.flush(ctx); err != nil {
			return err
		}
	}
	for _, c := range b.Changes {
		for _, records := range [][]vectordb.Record{c.Upserts, c.Deletes} {
			for i := range records {
				x.hold(c.Table.Serial, changeOf(&records[i], b.Partition))
			}
		}
		if len(x.columns) == 0 {
			continue
		}
		for i := range c.Attributes {
			x.hold(c.Table.Serial, attributesOf(&c.Attributes[i], c.Table.Dim))
		}
	}
	x.next.Progress[b.Partition] = b.Progress
	x.touch()
	return nil
}

// hold keeps a change until it is committed.
func (x *Index) hold(serial int64, c *change) {
	to := x.buffers[serial]
	if to == nil {
		to = map[string]*change{}
		x.buffers[serial] = to
	}
	if old := to[c.node]; old != nil {
		x.size -= old.bytes
		c = c.mergedWith(old)
	}
	to[c.node] = c
	x.size += c.bytes
}

// Flush implements vectordb.Flusher.
func (x *Index) Flush(ctx context.Context, now bool) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.pending == nil && !now && time.Since(x.since) < x.opts.Every {
		return nil
	}
	return x.flush(ctx)
}

// flush commits what there is.
func (x *Index) flush(ctx context.Context) error {
	for x.pending != nil || !x.since.IsZero() {
		if err := x.commit(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Newer implements vectordb.Index.
func (x *Index) Newer(ctx context.Context, old, by vectordb.Table) (bool, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.flush(ctx); err != nil {
		return false, err
	}
	for _, t := range []vectordb.Table{old, by} {
		if err := x.index(ctx, t.Serial); err != nil {
			return false, err
		}
	}
	newer := true
	var failed error
	err := x.opts.Places.Range(old.Serial, func(node string, p Place) bool {
		q, ok, err := x.opts.Places.Get(by.Serial, node)
		failed = err
		newer = ok && q.Version > p.Version && err == nil
		return newer
	})
	return newer, errors.Join(err, failed)
}

// Finish implements vectordb.Index: there is no search index.
func (x *Index) Finish(context.Context, vectordb.Table) error { return nil }

// Serve implements vectordb.Index.
func (x *Index) Serve(ctx context.Context, _ vectordb.Table, c vectordb.Catalog) error {
	return x.Save(ctx, c)
}

// Drop implements vectordb.Index. The branch goes with the catalog that does not have it.
func (x *Index) Drop(_ context.Context, t vectordb.Table) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range x.buffers[t.Serial] {
		x.size -= c.bytes
	}
	delete(x.buffers, t.Serial)
	delete(x.indexed, t.Serial)
	return x.opts.Places.Drop(t.Serial)
}
