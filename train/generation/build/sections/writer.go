package sections

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"giantstream/internal/tempfile"
)

const (
	// defaultBudget is how many bytes of sections are kept in memory until they go to a temporary file.
	defaultBudget = 48 << 20
	smallBytes    = 4 << 20
)

// Writer takes bytes for any of its sections, in any order. It keeps some in memory, and the rest in a temporary
// file. Close it after use.
type Writer struct {
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

// NewWriter returns a writer of n sections that keeps at most limit bytes in memory; 0 is for no limit but its own.
func NewWriter(n, limit int) *Writer {
	budget := defaultBudget
	if limit > 0 {
		budget = min(budget, limit)
	}
	return &Writer{buffers: make([][]byte, n), sums: make([]uint32, n), sizes: make([]int64, n),
		spilled: make([][]extent, n), budget: budget}
}

// Small says whether the object is in memory, and small enough to be put together there.
func (s *Writer) Small() bool { return s.w == nil && s.held < smallBytes }

// Add appends a record to section k. It does not keep the slice.
func (s *Writer) Add(k int, record []byte) error {
	s.buffers[k] = append(s.buffers[k], record...)
	s.sums[k] = crc32.Update(s.sums[k], sumTable, record)
	s.sizes[k] += int64(len(record))
	if s.held += len(record); s.held > s.budget {
		return s.spill()
	}
	return nil
}

func (s *Writer) spill() (err error) {
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

// WriteObject writes the object.
func (s *Writer) WriteObject(w io.Writer) error {
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
	sum := crc32.Checksum(table, sumTable)
	table = binary.LittleEndian.AppendUint32(table, uint32(len(s.sums)))
	table = append(binary.LittleEndian.AppendUint32(table, sum), magic...)
	_, err := w.Write(table)
	return err
}

// Close gives memory and file back.
func (s *Writer) Close() error {
	s.buffers = nil
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
