package backfill

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"giantstream/internal/peak"
)

// repeated reads a pattern over and over, up to a size.
func repeated(pattern []byte, size int64) io.Reader {
	return io.LimitReader(&cycle{pattern: pattern}, size)
}

type cycle struct {
	pattern []byte
	at      int
}

func (c *cycle) Read(p []byte) (n int, err error) {
	for n < len(p) {
		k := copy(p[n:], c.pattern[c.at:])
		n, c.at = n+k, (c.at+k)%len(c.pattern)
	}
	return n, nil
}

func pack(t *testing.T, w io.WriteCloser, from io.Reader) {
	t.Helper()
	if _, err := io.Copy(w, from); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCompressedBombs: whatever a compressed file unpacks to, and whatever window it asks for, it is
// read in bounded memory.
func TestCompressedBombs(t *testing.T) {
	newlines, spaces := bytes.Repeat([]byte("\n"), 4<<10), bytes.Repeat([]byte(" "), 1<<10)
	window := func(b *bytes.Buffer) io.WriteCloser {
		w, err := zstd.NewWriter(b, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(maxWindow))
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	zip := func(b *bytes.Buffer) io.WriteCloser { return gzip.NewWriter(b) }
	for name, test := range map[string]struct {
		extension string
		writer    func(*bytes.Buffer) io.WriteCloser
		pattern   []byte
		size      int64
		records   int
		over      int
	}{
		"newlines, gzip":      {".jsonl.gz", zip, newlines, 256 << 20, 0, 0},
		"newlines, CSV":       {".csv.gz", zip, newlines, 256 << 20, 0, 0},
		"blank lines":         {".jsonl.gz", zip, bytes.Repeat([]byte(" \t\r\n"), 1<<10), 64 << 20, 0, 0},
		"one line":            {".jsonl.gz", zip, spaces, 256 << 20, 0, 1},
		"one line, Zstandard": {".jsonl.zst", window, spaces, 512 << 20, 0, 1},
		"an open quote":       {".csv.zst", window, bytes.Repeat([]byte("id,\"text"), 1<<10), 256 << 20, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var packed bytes.Buffer
			pack(t, test.writer(&packed), repeated(test.pattern, test.size))
			in := Input{Name: "bomb" + test.extension}
			as, compression, err := in.format()
			if err != nil {
				t.Fatal(err)
			}
			records, over := 0, 0
			mb := allocatedMB(func() {
				r, closer, err := reader(object(packed.Bytes()), as, compression, 1<<20, columns{}, func(int64) {})
				if err != nil {
					if name != "an open quote" { // a header without an end
						t.Error(err)
					}
					return
				}
				defer closer.Close() //nolint:errcheck // only read
				for {
					rec, err := r.next()
					if errors.Is(err, io.EOF) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					if rec.over != nil {
						over++
					} else {
						records++
					}
				}
			})
			if mb > 200 {
				t.Errorf("%d bytes allocated %d MiB", packed.Len(), mb)
			}
			if records != test.records || over != test.over {
				t.Errorf("%d records, %d over the limit; want %d and %d", records, over, test.records, test.over)
			}
		})
	}
}

// TestBombsFitInMemory reads each bomb in a process of its own, and looks at what that took of the system.
func TestBombsFitInMemory(t *testing.T) {
	newlines := int64(2 << 30)
	if testing.Short() {
		newlines = 256 << 20
	}
	// lines reads a file of lines to its end.
	lines := func(name string) func(t *testing.T, data []byte) {
		return func(t *testing.T, data []byte) {
			t.Helper()
			in := Input{Name: name}
			as, compression, err := in.format()
			if err != nil {
				t.Fatal(err)
			}
			r, closer, err := reader(object(data), as, compression, 1<<20, columns{}, func(int64) {})
			if err != nil {
				t.Fatal(err)
			}
			defer closer.Close() //nolint:errcheck // only read
			for {
				rec, err := r.next()
				if errors.Is(err, io.EOF) {
					return
				}
				if err != nil || rec.over == nil {
					t.Fatalf("a record, or %v", err)
				}
			}
		}
	}
	parquet := func(want string, mapped ...string) func(t *testing.T, data []byte) {
		return func(t *testing.T, data []byte) {
			t.Helper()
			rows, _, err := readParquet(data, 1<<20, mapped...)
			if want == "" && (err != nil || len(rows) != 2) {
				t.Errorf("rows %q, %v", rows, err)
			}
			if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("error %v, want %q", err, want)
			}
		}
	}
	gz := func(pattern string, size int64) func(*testing.T) []byte {
		return func(t *testing.T) []byte {
			t.Helper()
			var packed bytes.Buffer
			w, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
			if err != nil {
				t.Fatal(err)
			}
			pack(t, w, repeated(bytes.Repeat([]byte(pattern), 1<<10), size))
			return packed.Bytes()
		}
	}
	list := func(t *testing.T) []byte {
		t.Helper()
		return parquetOf(t, [][]bombRow{{{ID: "a", Zeros: make([]int64, 20_000_000)}, {ID: "b"}}})
	}
	for _, test := range []struct {
		name  string
		input func(*testing.T) []byte
		read  func(*testing.T, []byte)
	}{
		{"2 GiB of newlines", gz("\n", newlines), lines("bomb.jsonl.gz")},
		{"a line of 1 GiB", gz(" ", newlines/2), lines("bomb.jsonl.gz")},
		{"20 million values, unmapped", list, parquet("", "id")},
		{"20 million values, mapped", list, parquet("smaller pages", "id", "zeros")},
	} {
		t.Run(test.name, func(t *testing.T) {
			mib := peak.Measure(t, func() []byte { return test.input(t) }, func(data []byte) { test.read(t, data) })
			if mib > 200 {
				t.Errorf("%d MiB resident, want 200 at most", mib)
			}
		})
	}
}
