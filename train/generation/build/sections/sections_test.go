package sections

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"giantstream/sink"
	"giantstream/sink/memstore"
)

// requests is a store that counts the reads of its objects.
type requests struct {
	*memstore.Store
	n int
}

type counting struct {
	sink.Object
	of *requests
}

func (r *requests) Open(ctx context.Context, key string) (sink.Object, error) {
	o, err := r.Store.Open(ctx, key)
	return counting{o, r}, err
}

func (c counting) ReadAt(p []byte, off int64) (int, error) {
	c.of.n++
	return c.Object.ReadAt(p, off)
}

// Whatever the sections, each comes back as it was written, alone or in a stretch, a stretch takes one request, and a
// changed byte is noticed.
func TestSectionsComeBack(t *testing.T) {
	content := make([]byte, 1<<19)
	for i := range content {
		content[i] = byte(rand.Uint32())
	}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		n := []int{0, 1, 1 + r.IntN(40), 60 + r.IntN(9), 3000}[seed%5]
		longest := []int{1, 300, 1 << 18}[r.IntN(3)]
		if n > 100 {
			longest = min(longest, 300)
		}
		w, want := NewWriter(n, 0), make([][]byte, n)
		w.budget = 1 + r.IntN(1<<20)
		for range n + r.IntN(1+2*n) {
			b, k := content[r.IntN(len(content)/2):][:r.IntN(1+longest)], r.IntN(n)
			want[k] = append(want[k], b...)
			if err := w.Add(k, b); err != nil {
				t.Fatal(err)
			}
		}
		var file bytes.Buffer
		if err := errors.Join(w.WriteObject(&file), w.Close()); err != nil {
			t.Fatal(err)
		}
		store := &requests{Store: &memstore.Store{}}
		ref := sink.Ref{Key: "k", Bytes: int64(file.Len()), Checksum: sink.ChecksumOf(file.Bytes())}
		put := func() *Reader {
			if err := sink.PutBytes(t.Context(), store, ref.Key, file.Bytes()); err != nil {
				t.Fatal(err)
			}
			store.n = 0
			s, err := Open(t.Context(), store, ref, 64)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			return s
		}
		s := put()
		if store.n > 2 || store.n > 1 && n <= 64 {
			t.Errorf("seed %d: a table of %d sections took %d requests", seed, n, store.n)
		}
		if s.Len() != n {
			t.Fatalf("seed %d: %d sections, want %d", seed, s.Len(), n)
		}
		for at := 0; at < n; {
			end := min(n, at+1+r.IntN(n))
			store.n = 0
			got, err := s.Stretch(at, end)
			if err != nil || len(got) == 0 || len(got) > end-at || store.n != 1 {
				t.Fatalf("seed %d: %d sections from %d to %d in %d requests: %v", seed, len(got), at, end, store.n, err)
			}
			bytesRead := 0
			for k, b := range got {
				if bytesRead += len(b); !bytes.Equal(b, want[at+k]) {
					t.Fatalf("seed %d: section %d differs", seed, at+k)
				}
			}
			if len(got) > 1 && bytesRead > stretchBytes {
				t.Errorf("seed %d: a stretch of %d bytes", seed, bytesRead)
			}
			at += len(got)
			one, err := s.section(at - 1)
			if err != nil || !bytes.Equal(one, want[at-1]) {
				t.Fatalf("seed %d: section %d differs: %v", seed, at-1, err)
			}
		}
		if _, err := s.Stretch(n, n+1); !errors.Is(err, sink.ErrDamaged) {
			t.Errorf("seed %d: section %d of %d: %v", seed, n, n, err)
		}
		if s.start[n] == 0 {
			continue
		}
		file.Bytes()[r.Int64N(s.start[n])] ^= 1
		s, failed := put(), false
		for at := 0; at < n && !failed; {
			got, err := s.Stretch(at, n)
			failed = err != nil
			if failed != errors.Is(err, sink.ErrDamaged) {
				t.Errorf("seed %d: %v", seed, err)
			}
			at += len(got)
		}
		if !failed {
			t.Errorf("seed %d: a changed byte was not noticed", seed)
		}
	}
}
