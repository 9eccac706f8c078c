package sections

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"giantstream/sink"
)

const (
	magic      = "GSSECT1\n"
	entryBytes = 12 // of the table
	tailBytes  = 16 // after the table
	// stretchBytes is how much of sections that are read one after the other is asked for at once: a request to a
	// bucket takes about as long as it takes to read a megabyte.
	stretchBytes = 4 << 20
)

var sumTable = crc32.MakeTable(crc32.Castagnoli)

// Reader is an open object of sections. It is safe for concurrent use.
type Reader struct {
	sink.Object
	key   string
	start []int64 // of each section, and the end of the last
	sums  []uint32
}

// Open opens an object and verifies its table: sink.ErrDamaged if it is not one of these sections. The table is
// read in one request if it has up to `likely` sections, else in two.
func Open(ctx context.Context, store sink.Store, ref sink.Ref, likely int) (_ *Reader, err error) {
	object, err := store.Open(ctx, ref.Key)
	if err != nil {
		return nil, err
	}
	s := &Reader{Object: object, key: ref.Key}
	defer func() {
		if err != nil {
			err = errors.Join(err, object.Close())
		}
	}()
	damaged := func(why string) error { return fmt.Errorf("%w: %s %s", sink.ErrDamaged, ref.Key, why) }
	if object.Size() != ref.Bytes || ref.Bytes < tailBytes {
		return nil, damaged(fmt.Sprintf("has %d bytes, %d were stored", object.Size(), ref.Bytes))
	}
	guess := min(ref.Bytes, int64(likely)*entryBytes+tailBytes)
	end, err := s.read(ref.Bytes-guess, guess)
	if err != nil {
		return nil, err
	}
	tail, end := end[guess-tailBytes:], end[:guess-tailBytes]
	n := int64(binary.LittleEndian.Uint32(tail))
	if string(tail[8:]) != magic || n*entryBytes > ref.Bytes-tailBytes {
		return nil, damaged("is not an object of sections")
	}
	table := end[max(0, int64(len(end))-n*entryBytes):]
	if int64(len(table)) < n*entryBytes {
		if table, err = s.read(ref.Bytes-tailBytes-n*entryBytes, n*entryBytes); err != nil {
			return nil, err
		}
	}
	if crc32.Checksum(table, sumTable) != binary.LittleEndian.Uint32(tail[4:]) {
		return nil, damaged("has another table than was stored")
	}
	s.start = make([]int64, n+1)
	for k := range n {
		s.start[k+1] = s.start[k] + int64(binary.LittleEndian.Uint64(table[k*entryBytes:]))
		s.sums = append(s.sums, binary.LittleEndian.Uint32(table[k*entryBytes+8:]))
	}
	if s.start[n] != ref.Bytes-tailBytes-n*entryBytes {
		return nil, damaged("has another table than was stored")
	}
	return s, nil
}

// Len is how many sections the object has.
func (s *Reader) Len() int { return len(s.sums) }

func (s *Reader) read(from, n int64) ([]byte, error) { return s.readInto(nil, from, n) }

// readInto uses the memory of b if it is large enough.
func (s *Reader) readInto(b []byte, from, n int64) ([]byte, error) {
	b = slices.Grow(b[:0], int(n))[:n]
	if got, err := s.ReadAt(b, from); int64(got) < n {
		return nil, fmt.Errorf("read %s: %w", s.key, errors.Join(err, io.ErrUnexpectedEOF))
	}
	return b, nil
}

// section reads and verifies section k.
func (s *Reader) section(k int) ([]byte, error) { return s.SectionInto(nil, k) }

// SectionInto is section with the memory of b, if it is large enough.
func (s *Reader) SectionInto(b []byte, k int) ([]byte, error) {
	if k < 0 || k >= len(s.sums) {
		return nil, fmt.Errorf("%w: %s has %d sections, no section %d", sink.ErrDamaged, s.key, len(s.sums), k)
	}
	b, err := s.readInto(b, s.start[k], s.start[k+1]-s.start[k])
	if err == nil {
		err = s.verify(k, b)
	}
	return b, err
}

func (s *Reader) verify(k int, b []byte) error {
	if crc32.Checksum(b, sumTable) != s.sums[k] {
		return fmt.Errorf("%w: section %d of %s has another checksum than was stored", sink.ErrDamaged, k, s.key)
	}
	return nil
}

// Stretch reads and verifies section k and, in the same request, those after it and before end, up to stretchBytes in
// all.
func (s *Reader) Stretch(k, end int) ([][]byte, error) {
	last := k + 1
	for last < min(end, len(s.sums)) && s.start[last+1]-s.start[k] <= stretchBytes {
		last++
	}
	if last == k+1 {
		b, err := s.section(k)
		return [][]byte{b}, err
	}
	b, err := s.read(s.start[k], s.start[last]-s.start[k])
	if err != nil {
		return nil, err
	}
	all := make([][]byte, 0, last-k)
	for ; k < last; k++ {
		n := s.start[k+1] - s.start[k]
		if err := s.verify(k, b[:n]); err != nil {
			return nil, err
		}
		all, b = append(all, b[:n:n]), b[n:]
	}
	return all, nil
}
