package forget

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/objstorage"
	"github.com/cockroachdb/pebble/v2/sstable"

	"giantstream/sink"
	"giantstream/stream/shard"
)

// What files of the engine end in.
const (
	tableMagic = "\xf0\x9f\xaa\xb3\xf0\x9f\xaa\xb3"
	blobMagic  = "\xf0\x9f\xaa\xb3\xf0\x9f\xa6\x80"
)

// table searches all keys and values of a table of a state, also those that newer tables hide.
func (s *Scanner) table(ctx context.Context, o sink.Object) (err error) {
	r, err := sstable.NewReader(ctx, readable{o}, sstable.ReaderOptions{})
	if err != nil {
		return fmt.Errorf("open a table of a state: %w", err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	// Values that lie in a file of their own are searched there.
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.DebugHandlesBlobContext)
	if err != nil {
		return fmt.Errorf("read a table of a state: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for kv := it.First(); kv != nil; kv = it.Next() {
		value, _, err := kv.Value(nil)
		if err != nil {
			return fmt.Errorf("read a value of a state: %w", err)
		}
		for _, id := range shard.IDsOf(kv.K.UserKey, value) {
			s.found(id, whole, "entries")
		}
		s.found(shard.TextOf(kv.K.UserKey, value), whole, "values")
	}
	return it.Error()
}

// readable is an object as the engine reads it. The object stays open.
type readable struct{ o sink.Object }

// ReadAt implements objstorage.Readable.
func (r readable) ReadAt(_ context.Context, p []byte, off int64) error {
	n, err := r.o.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// Close implements objstorage.Readable.
func (r readable) Close() error { return nil }

// Size implements objstorage.Readable.
func (r readable) Size() int64 { return r.o.Size() }

// NewReadHandle implements objstorage.Readable.
func (r readable) NewReadHandle(objstorage.ReadBeforeSize) objstorage.ReadHandle {
	handle := objstorage.MakeNoopReadHandle(r)
	return &handle
}
