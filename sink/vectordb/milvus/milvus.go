package milvus

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"google.golang.org/grpc"

	"giantstream/internal/retry"
	"giantstream/sink/vectordb"
)

// Options of an index.
type Options struct {
	// URL of the server: http://host:19530, or https.
	URL string
	// Token is user:password or an API key, "" for none.
	Token string
	// Database, "" for the server's default.
	Database string
	// TLS is nil for the system's certificates.
	TLS *tls.Config
	// Name of the alias, and prefix of the collections: a-z, 0-9 and _.
	Name string

	dial []grpc.DialOption // of tests
}

// Index is a vectordb.Index in Milvus.
type Index struct {
	name    string
	session string
	conn    *grpc.ClientConn
	c       milvuspb.MilvusServiceClient

	// mu is held for reading while rows change, and for writing by all else that writes.
	mu sync.RWMutex
	// turn counts the aliases of this process, one after the other.
	turn int
	// tables are the collections that the present aliases lead to, besides that of the sink.
	tables map[string]bool
	// suspect: a write has failed, and may still arrive.
	suspect atomic.Bool

	doneMu sync.Mutex
	done   map[int]vectordb.Progress
}

// maxID bounds what a field of text takes.
const maxID = 65535

// The collection of the sink has these rows, and one for each partition.
const catalogRow = "catalog"

func progressRow(partition int) string { return fmt.Sprintf("partition-%d", partition) }

// New returns an index, which connects when it is opened.
func New(o Options) (*Index, error) {
	conn, err := dial(o)
	if err != nil {
		return nil, err
	}
	return &Index{name: o.Name, session: rand.Text(), conn: conn, c: milvuspb.NewMilvusServiceClient(conn)}, nil
}

// Close implements vectordb.Index.
func (x *Index) Close() error { return x.conn.Close() }

// Check implements vectordb.Index.
func (x *Index) Check(nodeID string) error {
	switch {
	case len(nodeID) > maxID:
		return fmt.Errorf("its id has %d bytes; Milvus takes %d", len(nodeID), maxID)
	case !utf8.ValidString(nodeID):
		return errors.New("its id is not valid UTF-8, which Milvus needs")
	}
	return nil
}

// own is the collection of the sink.
func (x *Index) own() string { return x.name + "_sink" }

// Open implements vectordb.Index.
func (x *Index) Open(ctx context.Context) (vectordb.Saved, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	saved := vectordb.Saved{Progress: map[int]vectordb.Progress{}}
	if err := x.preflight(ctx); err != nil {
		return saved, err
	}
	x.tables = map[string]bool{}
	if err := x.create(ctx, x.own(), documentFields()); err != nil {
		return saved, err
	}
	if err := x.acquire(ctx); err != nil {
		return saved, err
	}
	x.suspect.Store(false)
	if _, err := x.document(ctx, catalogRow, &saved.Catalog); err != nil {
		return saved, err
	}
	for partition := range saved.Catalog.Partitions {
		var p vectordb.Progress
		found, err := x.document(ctx, progressRow(partition), &p)
		if err != nil {
			return saved, err
		}
		if found {
			saved.Progress[partition] = p
		}
	}
	x.doneMu.Lock()
	x.done = map[int]vectordb.Progress{}
	x.doneMu.Unlock()
	return saved, nil
}

// preflight refuses servers that cannot list aliases.
func (x *Index) preflight(ctx context.Context) error {
	about, err := x.c.GetVersion(ctx, &milvuspb.GetVersionRequest{})
	if _, err = checked("ask for the version", about, err); err != nil {
		return err
	}
	var major, minor int
	_, err = fmt.Sscanf(strings.TrimPrefix(about.GetVersion(), "v"), "%d.%d", &major, &minor)
	if err == nil && (major < 2 || major == 2 && minor < 4) {
		return fmt.Errorf("%w: Milvus %s cannot list aliases, which tell one writer from another; use 2.4 or newer",
			vectordb.ErrRefused, about.GetVersion())
	}
	return nil
}

// document reads a row of the sink's collection, and is false if there is none.
func (x *Index) document(ctx context.Context, id string, out any) (bool, error) {
	rows, err := x.query(ctx, x.writer(x.own()), []string{id}, "document")
	if missing(err) {
		return false, vectordb.ErrTakenOver
	}
	if err != nil {
		return false, err
	}
	texts := rows.text("document")
	if len(texts) == 0 {
		return false, nil
	}
	if err := json.Unmarshal([]byte(texts[0]), out); err != nil {
		return false, fmt.Errorf("%w: row %q of %s: %w", vectordb.ErrRefused, id, x.own(), err)
	}
	return true, nil
}

// put writes a row of the sink's collection.
func (x *Index) put(ctx context.Context, id string, in any) error {
	document, err := json.Marshal(in)
	if err != nil {
		return err
	}
	if len(document) > maxID {
		return fmt.Errorf("%w: the row %q of %s would have %d bytes, and Milvus takes %d: the topic has too many "+
			"partitions or shards for this sink", vectordb.ErrRefused, id, x.own(), len(document), maxID)
	}
	return x.lost(ctx, x.upsert(ctx, x.writer(x.own()), documentColumns(id, string(document)), 1))
}

// lost looks at the outcome of a write.
func (x *Index) lost(ctx context.Context, err error) error {
	switch {
	case err == nil || errors.Is(err, vectordb.ErrRefused):
		return err
	case !missing(err):
		x.suspect.Store(true)
		return err
	}
	if taken := x.check(ctx); taken != nil {
		return taken
	}
	return fmt.Errorf("%w: %w; 'giantstream sink refill' makes it anew", vectordb.ErrRefused, err)
}

// settled makes sure that this process is the writer, and that none of its lost writes can arrive any more. mu is held
// for writing.
func (x *Index) settled(ctx context.Context) error {
	if x.suspect.Load() {
		return x.renew(ctx)
	}
	return x.check(ctx)
}

// Save implements vectordb.Index.
func (x *Index) Save(ctx context.Context, c vectordb.Catalog) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.settled(ctx); err != nil {
		return err
	}
	return x.put(ctx, catalogRow, c)
}

// Create implements vectordb.Index.
func (x *Index) Create(ctx context.Context, t vectordb.Table) error {
	if t.Dim == 0 {
		return nil // there is nothing to put in yet
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.settled(ctx); err != nil {
		return err
	}
	name := t.Name(x.name)
	if x.tables[name] {
		return nil
	}
	if err := x.create(ctx, name, nodeFields(t.Dim)); err != nil {
		return err
	}
	if err := x.fence(ctx, name); err != nil {
		return err
	}
	x.tables[name] = true
	return nil
}

// Apply implements vectordb.Index.
func (x *Index) Apply(ctx context.Context, b vectordb.Batch) error {
	if x.suspect.Load() {
		x.mu.Lock()
		err := x.settled(ctx)
		x.mu.Unlock()
		if err != nil {
			return err
		}
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	x.doneMu.Lock()
	done := x.done[b.Partition]
	x.doneMu.Unlock()
	if done.Epoch == b.Progress.Epoch && done.Next >= b.Progress.Next {
		return nil
	}
	for _, c := range b.Changes {
		if c.Table.Dim == 0 {
			continue
		}
		if err := x.change(ctx, x.writer(c.Table.Name(x.name)), c); err != nil {
			return err
		}
	}
	if err := x.put(ctx, progressRow(b.Partition), b.Progress); err != nil {
		return err
	}
	x.doneMu.Lock()
	x.done[b.Partition] = b.Progress
	x.doneMu.Unlock()
	return nil
}

// chunk bounds the rows of a request.
const chunk = 1000

// change writes the records that are newer than what is stored.
func (x *Index) change(ctx context.Context, to string, c vectordb.Change) error {
	records := append(append([]vectordb.Record{}, c.Upserts...), c.Deletes...)
	for len(records) > 0 {
		n := min(len(records), chunk)
		if err := x.lost(ctx, x.write(ctx, to, records[:n])); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

func (x *Index) write(ctx context.Context, to string, records []vectordb.Record) error {
	ids := make([]string, len(records))
	for i, r := range records {
		ids[i] = rowID(r.NodeID)
	}
	rows, err := x.query(ctx, to, ids, "id", "offset")
	if err != nil {
		return err
	}
	stored := map[string]int64{}
	offsets := rows.numbers("offset")
	for i, id := range rows.text("id") {
		stored[id] = offsets[i]
	}
	var upserts []vectordb.Record
	var deletes []string
	for i, r := range records {
		at, there := stored[ids[i]]
		switch {
		case there && at >= r.Offset:
		case !r.Deleted && len(r.Vector) > 0:
			upserts = append(upserts, r)
		case there: // a node without a vector has no row
			deletes = append(deletes, ids[i])
		}
	}
	if len(upserts) > 0 {
		if err := x.upsert(ctx, to, nodeColumns(upserts), len(upserts)); err != nil {
			return err
		}
	}
	if len(deletes) == 0 {
		return nil
	}
	m, err := x.c.Delete(ctx, &milvuspb.DeleteRequest{CollectionName: to, Expr: among(deletes)})
	_, err = checked("delete rows of "+to, m, err)
	return err
}

// Newer implements vectordb.Index.
func (x *Index) Newer(context.Context, vectordb.Table, vectordb.Table) (bool, error) {
	return false, vectordb.ErrNoControl
}

// Finish implements vectordb.Index.
func (x *Index) Finish(ctx context.Context, t vectordb.Table) error {
	err := x.seal(ctx, t.Name(x.name))
	if missing(err) {
		x.mu.RLock()
		defer x.mu.RUnlock()
		return x.lost(ctx, err)
	}
	return err
}

// seal makes segments of what has come in, and waits until they are indexed.
func (x *Index) seal(ctx context.Context, name string) error {
	f, err := x.c.Flush(ctx, &milvuspb.FlushRequest{CollectionNames: []string{name}})
	if _, err = checked("flush "+name, f, err); err != nil {
		return err
	}
	segments, at := f.GetCollSegIDs()[name].GetData(), f.GetCollFlushTs()[name]
	return await(ctx, func() (bool, error) {
		s, err := x.c.GetFlushState(ctx, &milvuspb.GetFlushStateRequest{CollectionName: name, SegmentIDs: segments,
			FlushTs: at})
		if s, err = checked("wait until "+name+" is flushed", s, err); err != nil || !s.GetFlushed() {
			return false, err
		}
		d, err := x.c.DescribeIndex(ctx, &milvuspb.DescribeIndexRequest{CollectionName: name, FieldName: vectorField})
		if d, err = checked("ask for the index of "+name, d, err); err != nil {
			return false, err
		}
		for _, i := range d.GetIndexDescriptions() {
			if i.GetState() == commonpb.IndexState_Failed {
				return false, fmt.Errorf("the index of %s failed: %s", name, i.GetIndexStateFailReason())
			}
			if i.GetState() != commonpb.IndexState_Finished || i.GetPendingIndexRows() > 0 {
				return false, nil
			}
		}
		return true, nil
	})
}

// await asks until the answer is true.
func await(ctx context.Context, ask func() (bool, error)) error {
	pause := retry.Backoff{Min: 20 * time.Millisecond, Max: 5 * time.Second}
	for {
		if done, err := ask(); done || err != nil {
			return err
		}
		if err := pause.Wait(ctx); err != nil {
			return err
		}
	}
}

// Serve implements vectordb.Index.
func (x *Index) Serve(ctx context.Context, t vectordb.Table, c vectordb.Catalog) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.settled(ctx); err != nil {
		return err
	}
	if err := x.lead(ctx, x.name, t.Name(x.name)); err != nil {
		return err
	}
	return x.put(ctx, catalogRow, c)
}

// Drop implements vectordb.Index.
func (x *Index) Drop(ctx context.Context, t vectordb.Table) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.settled(ctx); err != nil {
		return err
	}
	name := t.Name(x.name)
	delete(x.tables, name)
	there, err := x.has(ctx, name)
	if err != nil || !there {
		return err
	}
	// Milvus drops no collection that an alias leads to.
	all, err := x.aliases(ctx, name)
	if err == nil {
		err = x.dropWriters(ctx, name, all, "")
	}
	if err != nil {
		return err
	}
	st, err := x.c.DropCollection(ctx, &milvuspb.DropCollectionRequest{CollectionName: name})
	return check("drop "+name, st, err)
}
