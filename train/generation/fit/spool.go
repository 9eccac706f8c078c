package fit

import (
	"bufio"
	"fmt"
	"slices"

	"giantstream/internal/tempfile"
)

// spool keeps records that a build reads again and again: in memory while they are few, from limit
// bytes on in a temporary file. The file is read record by record, in any order, and what is read
// often stays in the system's page cache: the system uses free memory for it, and takes it back for
// programs that need it. Write all records, then seal; from then on at is safe for concurrent use.
type spool struct {
	limit  int64    // < 0: none
	end    []int64  // record i ends at end[i]
	chunks [][]byte // the records while in memory, chunkSize bytes each
	file   *tempfile.File
	w      *bufio.Writer
}

const chunkSize = 1 << 20

func newSpool(limit int64) *spool { return &spool{limit: limit} }

// len returns the number of records.
func (s *spool) len() int { return len(s.end) }

// size returns the number of bytes.
func (s *spool) size() int64 {
	if len(s.end) == 0 {
		return 0
	}
	return s.end[len(s.end)-1]
}

// bytes returns the size of record i.
func (s *spool) bytes(i int) int {
	if i == 0 {
		return int(s.end[0])
	}
	return int(s.end[i] - s.end[i-1])
}

// append adds a record.
func (s *spool) append(record []byte) error {
	size := s.size() + int64(len(record))
	if s.file == nil && s.limit >= 0 && size > s.limit {
		if err := s.spill(); err != nil {
			return spoolError(err)
		}
	}
	s.end = append(s.end, size)
	if s.file != nil {
		if _, err := s.w.Write(record); err != nil {
			return spoolError(err)
		}
		return nil
	}
	for len(record) > 0 {
		last := len(s.chunks) - 1
		if last < 0 || len(s.chunks[last]) == chunkSize {
			s.chunks = append(s.chunks, make([]byte, 0, chunkSize))
			last++
		}
		n := min(len(record), chunkSize-len(s.chunks[last]))
		s.chunks[last] = append(s.chunks[last], record[:n]...)
		record = record[n:]
	}
	return nil
}

// spill moves the records to a file.
func (s *spool) spill() error {
	f, err := tempfile.Create("giantstream-spool-*")
	if err != nil {
		return err
	}
	s.file, s.w = f, bufio.NewWriterSize(f, chunkSize)
	for _, c := range s.chunks {
		if _, err := s.w.Write(c); err != nil {
			return err
		}
	}
	s.chunks = nil
	return nil
}

func spoolError(err error) error {
	return fmt.Errorf("temporary file (set TMPDIR to a larger disk, or raise memory_limit): %w", err)
}

// seal ends the writing.
func (s *spool) seal() error {
	if s.w == nil {
		return nil
	}
	err := s.w.Flush()
	s.w = nil
	if err != nil {
		return spoolError(err)
	}
	return nil
}

// recordAt returns record i, in the capacity of dst.
func (s *spool) recordAt(i int, dst []byte) ([]byte, error) {
	n := s.bytes(i)
	from := s.end[i] - int64(n)
	dst = slices.Grow(dst[:0], n)[:n]
	if s.file != nil {
		if n == 0 {
			return dst, nil
		}
		if _, err := s.file.ReadAt(dst, from); err != nil {
			return nil, spoolError(err)
		}
		return dst, nil
	}
	for done := 0; done < n; {
		at := from + int64(done)
		done += copy(dst[done:], s.chunks[at/chunkSize][at%chunkSize:])
	}
	return dst, nil
}

// close gives memory and file back.
func (s *spool) close() error {
	if s == nil {
		return nil
	}
	f := s.file
	*s = spool{limit: s.limit}
	if f == nil {
		return nil
	}
	return f.Close()
}
