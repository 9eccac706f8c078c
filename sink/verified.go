package sink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// ErrDamaged: an object does not hold the bytes that were stored.
var ErrDamaged = errors.New("object is damaged")

// Ref names an object and says what its bytes must be: their number, and their CRC-32C (Castagnoli).
// Documents that name objects hold the two.
type Ref struct {
	Key    string
	Bytes  int64
	CRC32C uint32
}

// Part names a Parquet object in a document, and the shard that its rows are of.
type Part struct {
	Key    string `json:"key"`
	Shard  int    `json:"shard"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	CRC32C uint32 `json:"crc32c"`
}

// Ref says what the object's bytes must be.
func (p Part) Ref() Ref { return Ref{Key: p.Key, Bytes: p.Bytes, CRC32C: p.CRC32C} }

const (
	// verifiedInMemory is the size up to which a verified object is held in memory while it is open. It is
	// read in one request then, and what is verified is what is used.
	verifiedInMemory = 8 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

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
	if err := ref.compare(crc32.Checksum(data, castagnoli)); err != nil {
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
	sum := uint32(0)
	for at := int64(0); at < ref.Bytes; {
		chunk := buf[:min(int64(len(buf)), ref.Bytes-at)]
		// io.ReaderAt may give io.EOF along with the last byte.
		if n, err := object.ReadAt(chunk, at); n < len(chunk) {
			return nil, fmt.Errorf("verify %s: %d of %d bytes: %w", ref.Key, at+int64(n), ref.Bytes,
				errors.Join(err, io.ErrUnexpectedEOF))
		}
		sum = crc32.Update(sum, castagnoli, chunk)
		at += int64(len(chunk))
	}
	if err = ref.compare(sum); err != nil {
		return nil, err
	}
	return object, nil
}

func (r Ref) compare(sum uint32) error {
	if sum != r.CRC32C {
		return fmt.Errorf("%w: the bytes of %s have the checksum %08x, %08x was stored", ErrDamaged, r.Key,
			sum, r.CRC32C)
	}
	return nil
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
	sum := crc32.New(castagnoli)
	n, err := io.Copy(sum, Sequential(object))
	return Ref{key, n, sum.Sum32()}, err
}

// held is a small object that was read whole.
type held struct{ *bytes.Reader }

func (h held) Close() error { return nil }
