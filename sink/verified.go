package sink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// ErrDamaged: an object does not hold the bytes that were stored.
var ErrDamaged = errors.New("object is damaged")

// Ref names an object and says what its bytes must be: their number and their checksum. Documents that name
// objects hold the two.
type Ref struct {
	Key   string
	Bytes int64
	Checksum
}

// Part names a Parquet object in a document, and the shard that its rows are of.
type Part struct {
	Key   string `json:"key"`
	Shard int    `json:"shard"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
	Checksum
}

// Ref says what the object's bytes must be.
func (p Part) Ref() Ref { return Ref{Key: p.Key, Bytes: p.Bytes, Checksum: p.Checksum} }

// verifiedInMemory is the size up to which a verified object is held in memory while it is open. It is
// read in one request then, and what is verified is what is used.
const verifiedInMemory = 8 << 20

// OpenVerified opens an object and reads it through: ErrDamaged if it is not what ref says. An object of up
// to 8 MiB is then held in memory; a larger one is read again from the store as the caller asks for it.
func OpenVerified(ctx context.Context, s Store, ref Ref) (Object, error) {
	if ref.Bytes <= verifiedInMemory {
		return openHeld(ctx, s, ref)
	}
	return openThrough(ctx, s, ref)
}

// openHeld reads a small object whole.
func openHeld(ctx context.Context, s Store, ref Ref) (Object, error) {
	data, err := ReadUpTo(ctx, s, ref.Key, ref.Bytes+1)
	switch size := int64(len(data)); {
	case err != nil:
		return nil, err
	case size > ref.Bytes:
		return nil, fmt.Errorf("%w: %s has more than the %d bytes that were stored", ErrDamaged, ref.Key, ref.Bytes)
	case size < ref.Bytes:
		return nil, fmt.Errorf("%w: %s has %d bytes, %d were stored", ErrDamaged, ref.Key, size, ref.Bytes)
	}
	sum := ref.hash()
	sum.Write(data)
	if err := ref.compare(ref.Key, sum); err != nil {
		return nil, err
	}
	return held{bytes.NewReader(data)}, nil
}

// openThrough reads a large object through, and leaves it open.
func openThrough(ctx context.Context, s Store, ref Ref) (_ Object, err error) {
	object, err := s.Open(ctx, ref.Key)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, object.Close())
		}
	}()
	if object.Size() != ref.Bytes {
		return nil, fmt.Errorf("%w: %s has %d bytes, %d were stored", ErrDamaged, ref.Key, object.Size(), ref.Bytes)
	}
	buf := make([]byte, readAhead)
	sum := ref.hash()
	for at := int64(0); at < ref.Bytes; {
		chunk := buf[:min(int64(len(buf)), ref.Bytes-at)]
		// io.ReaderAt may give io.EOF along with the last byte.
		if n, err := object.ReadAt(chunk, at); n < len(chunk) {
			return nil, fmt.Errorf("verify %s: %d of %d bytes: %w", ref.Key, at+int64(n), ref.Bytes,
				errors.Join(err, io.ErrUnexpectedEOF))
		}
		sum.Write(chunk)
		at += int64(len(chunk))
	}
	if err = ref.compare(ref.Key, sum); err != nil {
		return nil, err
	}
	return object, nil
}

// Verify reads an object through: ErrDamaged if it is not what ref says.
func Verify(ctx context.Context, s Store, ref Ref) error {
	object, err := OpenVerified(ctx, s, ref)
	if err != nil {
		return err
	}
	return object.Close()
}

// CopyObject copies an object to a key of a store, verified.
func CopyObject(ctx context.Context, from Store, ref Ref, into Store, key string) error {
	object, err := OpenVerified(ctx, from, ref)
	if err != nil {
		return err
	}
	defer object.Close()
	return into.Put(ctx, key, io.NewSectionReader(object, 0, object.Size()), object.Size())
}

// RefOf reads an object of any size through and says what its bytes are.
func RefOf(ctx context.Context, s Store, key string) (_ Ref, err error) {
	object, err := s.Open(ctx, key)
	if err != nil {
		return Ref{}, err
	}
	defer func() { err = errors.Join(err, object.Close()) }()
	sum := NewHash()
	n, err := io.Copy(sum, Sequential(object))
	return Ref{key, n, ChecksumFrom(sum)}, err
}

// held is a small object that was read whole.
type held struct{ *bytes.Reader }

func (h held) Close() error { return nil }
