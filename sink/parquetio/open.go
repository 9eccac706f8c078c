package parquetio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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

// readBuffer is the read-ahead per column: on S3, the size of a GET.
const readBuffer = 1 << 20

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

// checkFooter guards the library, which allocates whatever length the footer
// states: the last 8 bytes are the footer's length and "PAR1".
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
	if n := int64(binary.LittleEndian.Uint32(b[:4])); n > size-head-tail {
		return fmt.Errorf("%w: a footer of %d bytes in a file of %d", ErrCorrupt, n, size)
	}
	return nil
}

// checkFormat refuses a file that names another format or version. A file that
// names none, because another tool has rewritten it, is judged by its columns.
func checkFormat(f *parquet.File, want string) error {
	got, ok := f.Lookup(FormatKey)
	if !ok || got == want {
		return nil
	}
	hint := "is this the right file?"
	kind, _, _ := strings.Cut(got, "/")
	if wantKind, _, _ := strings.Cut(want, "/"); kind == wantKind {
		hint = "it was written by another version of giantstream"
	}
	return fmt.Errorf("%w: the file holds %q, this reader knows %q (%s)", ErrSchema, got, want, hint)
}

// corrupt marks what the Parquet library complains about as ErrCorrupt, unless
// the store is to blame: that may go away, damage does not.
func corrupt(err error) error {
	if _, ok := errors.AsType[*sink.Error](err); ok {
		return err
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}

// recoverCorrupt turns a panic of the Parquet library, which trusts some of
// what files say, into ErrCorrupt.
func recoverCorrupt(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", ErrCorrupt, p)
	}
}
