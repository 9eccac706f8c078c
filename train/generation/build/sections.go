package build

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"giantstream/internal/tempfile"
	"giantstream/sink"
)

// Tasks exchange objects of sections, each read by itself and verified when it is read:
//
//	the sections, one after the other
//	for each: its bytes u64, CRC-32C u32
//	number of sections u32, CRC-32C of the table u32, "GSSECT1\n"
const (
	sectionsMagic = "GSSECT1\n"
	entryBytes    = 12
	tailBytes     = 16
	// sectionsBudget is how many bytes of sections are kept in memory until they go to a temporary file.
	sectionsBudget = 48 << 20
	// stretchBytes is how much of sections that are read one after the other is asked for at once: a request to a
	// bucket takes about as long as it takes to read a megabyte.
	stretchBytes = 4 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sectionWriter takes bytes for any of its sections, in any order. Close it after use.
type sectionWriter struct {
	buffers [][]byte
	sums    []uint32
	sizes   []int64
	held    int
	budget  int
	spilled [][]extent
	file    *tempfile.File
	w       *bufio.Writer
	at      int64
}

type extent struct{ from, bytes int64 }

func newSections(n int) *sectionWriter {
	return &sectionWriter{buffers: make([][]byte, n), sums: make([]uint32, n), sizes: make([]int64, n),
		spilled: make([][]extent, n), budget: sectionsBudget}
}

// add appends a record to section k. It does not keep the slice.
func (s *sectionWriter) add(k int, record []byte) error {
	s.buffers[k] = append(s.buffers[k], record...)
	s.sums[k] = crc32.Update(s.sums[k], castagnoli, record)
	s.sizes[k] += int64(len(record))
	if s.held += len(record); s.held > s.budget {
		return s.spill()
	}
	return nil
}

func (s *sectionWriter) spill() (err error) {
	if s.file == nil {
		if s.file, err = tempfile.Create("giantstream-sections-*"); err != nil {
			return err
		}
		s.w = bufio.NewWriterSize(s.file, 1<<20)
	}
	for k, b := range s.buffers {
		if len(b) == 0 {
			continue
		}
		if _, err := s.w.Write(b); err != nil {
			return fmt.Errorf("temporary file (set TMPDIR to a larger disk): %w", err)
		}
		s.spilled[k] = append(s.spilled[k], extent{s.at, int64(len(b))})
		s.at += int64(len(b))
		if len(s.buffers) < 1024 {
			s.buffers[k] = b[:0]
		} else {
			s.buffers[k] = nil
		}
	}
	s.held = 0
	return nil
}

// writeTo writes the object.
func (s *sectionWriter) writeTo(w io.Writer) error {
	if s.w != nil {
		if err := errors.Join(s.spill(), s.w.Flush()); err != nil {
			return err
		}
	}
	table := make([]byte, 0, len(s.sums)*entryBytes+tailBytes)
	for k := range s.sums {
		for _, e := range s.spilled[k] {
			if _, err := io.Copy(w, io.NewSectionReader(s.file, e.from, e.bytes)); err != nil {
				return err
			}
		}
		if _, err := w.Write(s.buffers[k]); err != nil {
			return err
		}
		table = binary.LittleEndian.AppendUint64(table, uint64(s.sizes[k]))
		table = binary.LittleEndian.AppendUint32(table, s.sums[k])
	}
	sum := crc32.Checksum(table, castagnoli)
	table = binary.LittleEndian.AppendUint32(table, uint32(len(s.sums)))
	table = append(binary.LittleEndian.AppendUint32(table, sum), sectionsMagic...)
	_, err := w.Write(table)
	return err
}

// close gives memory and file back.
func (s *sectionWriter) close() error {
	s.buffers = nil
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// sections is an open object of sections. It is safe for concurrent use.
type sections struct {
	sink.Object
	key   string
	start []int64 // of each section, and the end of the last
	sums  []uint32
}

// openSections opens an object and verifies its table: sink.ErrDamaged if it is not one of these sections. The table is
// read in one request if it has up to `likely` sections, else in two.
func openSections(ctx context.Context, store sink.Store, ref sink.Ref, likely int) (_ *sections, err error) {
	object, err := store.Open(ctx, ref.Key)
	if err != nil {
		return nil, err
	}
	s := &sections{Object: object, key: ref.Key}
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
	if string(tail[8:]) != sectionsMagic || n*entryBytes > ref.Bytes-tailBytes {
		return nil, damaged("is not an object of sections")
	}
	table := end[max(0, int64(len(end))-n*entryBytes):]
	if int64(len(table)) < n*entryBytes {
		if table, err = s.read(ref.Bytes-tailBytes-n*entryBytes, n*entryBytes); err != nil {
			return nil, err
		}
	}
	if crc32.Checksum(table, castagnoli) != binary.LittleEndian.Uint32(tail[4:]) {
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

func (s *sections) len() int { return len(s.sums) }

func (s *sections) read(from, n int64) ([]byte, error) { return s.readInto(nil, from, n) }

// readInto uses the memory of b if it is large enough.
func (s *sections) readInto(b []byte, from, n int64) ([]byte, error) {
	b = slices.Grow(b[:0], int(n))[:n]
	if got, err := s.ReadAt(b, from); int64(got) < n {
		return nil, fmt.Errorf("read %s: %w", s.key, errors.Join(err, io.ErrUnexpectedEOF))
	}
	return b, nil
}

// section reads and verifies section k.
func (s *sections) section(k int) ([]byte, error) { return s.sectionInto(nil, k) }

// sectionInto is section with the memory of b, if it is large enough.
func (s *sections) sectionInto(b []byte, k int) ([]byte, error) {
	if k < 0 || k >= len(s.sums) {
		return nil, fmt.Errorf("%w: %s has %d sections, no section %d", sink.ErrDamaged, s.key, len(s.sums), k)
	}
	b, err := s.readInto(b, s.start[k], s.start[k+1]-s.start[k])
	if err == nil {
		err = s.verify(k, b)
	}
	return b, err
}

func (s *sections) verify(k int, b []byte) error {
	if crc32.Checksum(b, castagnoli) != s.sums[k] {
		return fmt.Errorf("%w: section %d of %s has another checksum than was stored", sink.ErrDamaged, k, s.key)
	}
	return nil
}

// stretch reads and verifies section k and, in the same request, those after it and before end, up to stretchBytes in
// all.
func (s *sections) stretch(k, end int) ([][]byte, error) {
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
