package milvus

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"google.golang.org/grpc"

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
	// Attributes are fields of the rows.
	Attributes []vectordb.Attribute

	dial []grpc.DialOption // of tests
}

// Index is a vectordb.Index in Milvus.
type Index struct {
	name    string
	session string
	conn    *grpc.ClientConn
	c       milvuspb.MilvusServiceClient

	attributes []vectordb.Attribute

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
	return &Index{name: o.Name, session: rand.Text(), conn: conn, c: milvuspb.NewMilvusServiceClient(conn),
		attributes: o.Attributes}, nil
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

// sinkCollection returns the name of the collection that holds the sink's own documents.
func (x *Index) sinkCollection() string { return x.name + "_sink" }

// Open implements vectordb.Index.
func (x *Index) Open(ctx context.Context) (vectordb.Saved, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	saved := vectordb.Saved{Progress: map[int]vectordb.Progress{}}
	if err := x.preflight(ctx); err != nil {
		return saved, err
	}
	if err := x.free(ctx); err != nil {
		return saved, err
	}
	x.tables = map[string]bool{}
	if err := x.create(ctx, x.sinkCollection(), documentFields(), false); err != nil {
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

// Save implements vectordb.Index.
func (x *Index) Save(ctx context.Context, c vectordb.Catalog) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.settled(ctx); err != nil {
		return err
	}
	return x.put(ctx, catalogRow, c)
}
