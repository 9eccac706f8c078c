package sink

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"
)

// ErrChanged: the object was replaced while it was being read. Opening it again gives the new one.
var ErrChanged = errors.New("object was replaced while it was being read")

// changedRetries bounds how often ReadAll starts over because the object was replaced meanwhile.
const changedRetries = 8

// Fetcher is a Store that reads an object in one request, where Open and ReadAt need two. ReadAll and
// OpenVerified use it.
type Fetcher interface {
	// Fetch returns the first bytes of an object, `most` of them or all if there are fewer; ErrNotFound, or
	// ErrChanged as the reads of Open.
	Fetch(ctx context.Context, key string, most int64) ([]byte, error)
}

// Local begins the keys under which a directory lists what a pipeline keeps beside its store: the log of the
// broker inside the process, and the shards' states.
const Local = "local/"

// Objects lists all objects of a store, in ascending order. The files below local/ are none of them.
func Objects(ctx context.Context, s Store) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for info, err := range s.List(ctx, "", "") {
			if err == nil && strings.HasPrefix(info.Key, Local) {
				continue
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// Exists reports whether there is an object under key.
func Exists(ctx context.Context, s Store, key string) (bool, error) {
	object, err := s.Open(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, object.Close()
}

// ReadAll returns the whole object, or ErrNotFound. It is meant for manifests and artifacts, which
// fit into memory.
func ReadAll(ctx context.Context, s Store, key string) ([]byte, error) {
	return ReadUpTo(ctx, s, key, math.MaxInt64)
}

// ReadUpTo returns the first bytes of an object: `most` of them, or all if there are fewer; ErrNotFound if it is not
// there.
func ReadUpTo(ctx context.Context, s Store, key string, most int64) ([]byte, error) {
	for attempt := 0; ; attempt++ {
		data, err := readOnce(ctx, s, key, most)
		if !errors.Is(err, ErrChanged) || attempt == changedRetries {
			return data, err
		}
	}
}

func readOnce(ctx context.Context, s Store, key string, most int64) (data []byte, err error) {
	if f, ok := s.(Fetcher); ok {
		return f.Fetch(ctx, key, most)
	}
	obj, err := s.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, obj.Close()) }()
	data = make([]byte, min(obj.Size(), most))
	n, err := obj.ReadAt(data, 0)
	if n == len(data) { // io.ReaderAt may give io.EOF along with the last byte
		return data, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return nil, fmt.Errorf("read object %q: %d of %d bytes: %w", key, n, len(data), err)
}

// readAhead is how much of an object a sequential reader asks for at a time: on S3, each read is a request.
const readAhead = 4 << 20

// Sequential reads a whole object from front to back in large reads, even if the caller asks for little at a time:
// io.Copy into a file, say, asks for 32 KiB.
func Sequential(o Object) io.Reader {
	all := struct{ io.Reader }{io.NewSectionReader(o, 0, o.Size())}
	buffered := bufio.NewReaderSize(all, int(max(1, min(o.Size(), readAhead))))
	return struct{ io.Reader }{buffered} // a bufio.Reader's WriteTo would let a file read past the buffer
}

// Summed is content with a known SHA-256. A store that signs its uploads need not compute the sum
// in Put.
type Summed struct {
	*io.SectionReader
	SHA256 [sha256.Size]byte
}

// PutBytes stores data under key.
func PutBytes(ctx context.Context, s Store, key string, data []byte) error {
	return s.Put(ctx, key, bytes.NewReader(data), int64(len(data)))
}

// ConfirmCreate decides the outcome of a Create that found the key taken. If the object holds
// exactly data, an earlier attempt of the same Create has succeeded and only its response was lost:
// nil. Otherwise another writer was first: ErrExists. Implementations of Store call it.
func ConfirmCreate(ctx context.Context, s Store, key string, data []byte) error {
	stored, err := ReadAll(ctx, s, key)
	switch {
	case err == nil && bytes.Equal(stored, data):
		return nil
	case err == nil, errors.Is(err, ErrNotFound): // taken, or taken and deleted since
		return &Error{Op: "create", Key: key, Err: ErrExists}
	default:
		return &Error{Op: "create", Key: key, Err: fmt.Errorf("the key is taken, and the object there cannot be "+
			"read: %w", err)}
	}
}
