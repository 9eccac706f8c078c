package parquetio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"giantstream/sink"
)

var (
	// ErrCorrupt: the file is no Parquet file or is damaged.
	ErrCorrupt = errors.New("not a readable parquet file")
	// ErrSchema: a Parquet file, but not with the columns wanted.
	ErrSchema = errors.New("unexpected parquet schema")
)

// maxFooter bounds a file's footer.
const maxFooter = 64 << 20

// readBuffer is the read-ahead per column: on S3, the size of a GET.
const readBuffer = 1 << 20

// OpenFile reads the footer of any Parquet file, and refuses one that its reading would need too much
// memory for. For the pages see CheckPages.
func OpenFile(r io.ReaderAt, size int64) (*parquet.File, error) { return openFile(r, size) }

// openFile reads the footer.
func openFile(r io.ReaderAt, size int64) (f *parquet.File, err error) {
	defer recoverCorrupt(&err)
	if err := checkFooter(r, size); err != nil {
		return nil, err
	}
	f, err = parquet.OpenFile(r, size,
		parquet.SkipPageIndex(true),
		parquet.SkipBloomFilters(true),
		parquet.FileReadMode(parquet.ReadModeSync), // no goroutines, so that panics stay here
		parquet.ReadBufferSize(readBuffer),
	)
	if err != nil {
		return nil, corrupt(err)
	}
	return f, nil
}

// openFormat reads the footer of a file that should be of the given format.
func openFormat(r io.ReaderAt, size int64, format string) (*parquet.File, error) {
	f, err := openFile(r, size)
	if err != nil {
		return nil, err
	}
	return f, checkFormat(f, format)
}

// checkFooter guards the library, which allocates whatever length the footer states: the last 8
// bytes are the footer's length and "PAR1".
func checkFooter(r io.ReaderAt, size int64) error {
	const head, tail = 4, 8
	if size < head+tail {
		return fmt.Errorf("%w: %d bytes", ErrCorrupt, size)
	}
	var b [tail]byte
	if n, err := r.ReadAt(b[:], size-tail); n < tail {
		return fmt.Errorf("read parquet footer: %w", err)
	}
	if string(b[4:]) != "PAR1" {
		return fmt.Errorf("%w: it does not end in PAR1", ErrCorrupt)
	}
	n := int64(binary.LittleEndian.Uint32(b[:4]))
	switch {
	case n > size-head-tail:
		return fmt.Errorf("%w: a footer of %d bytes in a file of %d", ErrCorrupt, n, size)
	case n > maxFooter:
		return fmt.Errorf("%w: a footer of %d bytes, at most %d are read; split the file", ErrCorrupt, n, maxFooter)
	}
	footer := make([]byte, n)
	if _, err := r.ReadAt(footer, size-tail-n); err != nil {
		return fmt.Errorf("read parquet footer: %w", err)
	}
	if err := (&thriftWalk{b: footer}).structure(); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

// checkFormat refuses a file that names another format or a later version. A file that names none,
// because another tool has rewritten it, is checked by its columns alone, and so is an earlier
// version: columns that it lacks are Optional.
func checkFormat(f *parquet.File, want string) error {
	got, ok := f.Lookup(formatKey)
	if !ok || got == want {
		return nil
	}
	hint := "is this the right file?"
	kind, version, _ := strings.Cut(got, "/")
	if wantKind, wantVersion, _ := strings.Cut(want, "/"); kind == wantKind {
		has, err := strconv.Atoi(version)
		if knows, _ := strconv.Atoi(wantVersion); err == nil && 1 <= has && has < knows {
			return nil
		}
		hint = "it was written by another version of giantstream"
	}
	return fmt.Errorf("%w: the file holds %q, this reader knows %q (%s)", ErrSchema, got, want, hint)
}

// corrupt marks an error of the Parquet library as ErrCorrupt, unless the store caused it: a fault
// of the store may pass, damage does not.
func corrupt(err error) error {
	if _, ok := errors.AsType[*sink.Error](err); ok {
		return err
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}

// recoverCorrupt turns a panic of the Parquet library, which trusts some of what files say, into
// ErrCorrupt.
func recoverCorrupt(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", ErrCorrupt, p)
	}
}
