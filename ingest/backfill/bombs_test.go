package backfill

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"

	"github.com/klauspost/compress/zstd"
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
