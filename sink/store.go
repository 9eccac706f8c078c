package sink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// Errors that callers test with errors.Is. Implementations wrap them with the operation and the
// key.
var (
	// ErrNotFound: the object does not exist.
	ErrNotFound = errors.New("object not found")
	// ErrExists: Create found an object under that key already.
	ErrExists = errors.New("object already exists")
	// ErrNoConditions: the store does not enforce create-once, so the commit protocol would lose
	// its fencing (see Probe).
	ErrNoConditions = errors.New("object store does not enforce conditional writes")
)

// Store is an object store: a flat namespace of immutable byte strings under slash-separated keys.
// Every implementation passes sink/storetest.
//
// Keys are relative to the store's root, have no leading slash, no empty or dot segments and use
// only [A-Za-z0-9._=/-]; implementations reject others with ErrBadKey (see CheckKey). No key may be
// a directory of another: with "a" stored, "a/b" is an error on some stores. All methods may be
// called from several goroutines.
type Store interface {
	// Put writes the object whole or not at all, replacing what was there. size is the number of
	// bytes in r. Idempotent.
	Put(ctx context.Context, key string, r io.Reader, size int64) error

	// Create writes the object only if the key is free. It returns ErrExists if not: of several
	// callers that race, exactly one wins. If the key holds exactly data already, Create succeeds,
	// because then a retry has met its own first attempt. Callers that race put a writer id into
	// the data for this reason. After an error other than ErrExists the object may or may not
	// exist.
	Create(ctx context.Context, key string, data []byte) error

	// Open gives random access to an object, or ErrNotFound. Reads obey ctx too, and may fail with
	// ErrChanged if the object is replaced.
	Open(ctx context.Context, key string) (Object, error)

	// List yields the objects whose key starts with prefix and is greater than after (pass "" for
	// all), in ascending key order. A prefix that matches nothing yields nothing.
	List(ctx context.Context, prefix, after string) iter.Seq2[Info, error]

	// Delete removes the object. Deleting what does not exist is no error.
	Delete(ctx context.Context, key string) error

	// URL names the store for people: file:///… or s3://bucket/prefix, never with credentials.
	URL() string

	// Pipeline is the id of the pipeline that the store is of, "" as long as this process does not know it.
	// Documents are sealed with it (PlaceOf), so that one of another pipeline is refused. SetPipeline is called by
	// who reads or writes the identity in the store. Implementations embed Membership.
	Pipeline() string
	SetPipeline(id string)
}

// Object is an open object. Reads past the end return io.EOF as io.ReaderAt describes.
type Object interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Info describes a listed object.
type Info struct {
	Key      string
	Size     int64
	Modified time.Time
}

// Error is what store implementations return: the operation, the object and the cause, and
// sometimes a hint.
type Error struct {
	Op   string // "put", "create", "open", "read", "list", "delete"
	Key  string
	Err  error
	Hint string
}

func (e *Error) Error() string {
	s := fmt.Sprintf("store %s %q: %v", e.Op, e.Key, e.Err)
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }
