package parquetio

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"giantstream/sink"
	"giantstream/sink/memstore"
)

// A draft reads as what was written, in pieces of any size, in memory or not.
func TestDraft(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for name, pieces := range map[string][]int{
		"nothing":           {},
		"small":             {1, 0, 1000},
		"as much as fits":   {draftBytes - 1, 1},
		"a byte more":       {draftBytes, 1},
		"one large piece":   {draftBytes + 1},
		"small, large":      {10, 3 * draftBytes, 10},
		"several overflows": {draftBytes / 2, draftBytes, draftBytes, 1, draftBytes - 1},
	} {
		t.Setenv("TMPDIR", t.TempDir())
		d := newDraft()
		var want bytes.Buffer
		for _, n := range pieces {
			p := make([]byte, n)
			for i := range p {
				p[i] = byte(r.Uint32())
			}
			want.Write(p)
			if n, err := d.Write(p); n != len(p) || err != nil {
				t.Fatalf("%s: wrote %d of %d bytes, %v", name, n, len(p), err)
			}
		}
		if onDisk := d.file != nil; onDisk != (want.Len() > draftBytes) {
			t.Errorf("%s: %d bytes, on the disk: %t", name, want.Len(), onDisk)
		}
		f, err := d.finish()
		if err != nil {
			t.Fatal(err)
		}
		at := make([]byte, want.Len()/2)
		if _, err := f.ReadAt(at, int64(want.Len()-len(at))); err != nil && len(at) > 0 {
			t.Errorf("%s: %v", name, err)
		}
		got, err := io.ReadAll(io.NewSectionReader(f, 0, d.size))
		if err != nil || !bytes.Equal(got, want.Bytes()) || !bytes.HasSuffix(got, at) || d.size != int64(want.Len()) {
			t.Errorf("%s: %d bytes, size %d, %v; want %d", name, len(got), d.size, err, want.Len())
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// holding is a store that fails, and may still be reading.
type holding struct {
	sink.Store
	held *io.SectionReader
}

var errHolding = errors.New("no answer")

func (s *holding) Put(_ context.Context, _ string, r io.Reader, size int64) error {
	s.held = io.NewSectionReader(r.(io.ReaderAt), 0, size)
	return errHolding
}

func TestTheMemoryOfAFailedPutIsNotReused(t *testing.T) {
	store := &holding{}
	if _, err := Put(t.Context(), store, "a", numbers(), count(1000, nil)); !errors.Is(err, errHolding) {
		t.Fatalf("got %v, want %v", err, errHolding)
	}
	before, err := io.ReadAll(store.held)
	if err != nil {
		t.Fatal(err)
	}
	for n := range int64(10) { // smaller files, which need no more memory
		if _, err := Put(t.Context(), &memstore.Store{}, "b", numbers(), count(900-n, nil)); err != nil {
			t.Fatal(err)
		}
	}
	after := make([]byte, len(before))
	if _, err := store.held.ReadAt(after, 0); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file has changed after its Put has failed (%v)", err)
	}
}
