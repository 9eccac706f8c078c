package sink_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/sink"
	"giantstream/sink/memstore"
)

// careless ignores the condition of Create, as some S3 servers do.
type careless struct{ memstore.Store }

func (s *careless) Create(ctx context.Context, key string, data []byte) error {
	return s.Put(ctx, key, strings.NewReader(string(data)), int64(len(data)))
}

func TestProbe(t *testing.T) {
	t.Run("a store that ignores conditions is refused", func(t *testing.T) {
		s := &careless{}
		err := sink.Probe(t.Context(), s)
		if !errors.Is(err, sink.ErrNoConditions) {
			t.Fatalf("got %v, want ErrNoConditions", err)
		}
		if !strings.Contains(err.Error(), "If-None-Match") {
			t.Errorf("%q does not say what to do", err)
		}
		for info := range s.List(t.Context(), "", "") {
			t.Errorf("the probe left %s", info.Key)
		}
	})
	t.Run("any failing call is reported", func(t *testing.T) {
		boom := errors.New("boom")
		for n := 1; ; n++ {
			calls := 0
			s := &memstore.Store{Fail: func(_, _ string) error {
				if calls++; calls == n {
					return boom
				}
				return nil
			}}
			err := sink.Probe(t.Context(), s)
			if calls < n { // n calls were not needed: all of them have failed once
				if err != nil {
					t.Errorf("undisturbed: %v", err)
				}
				return
			}
			if !errors.Is(err, boom) {
				t.Errorf("call %d failed: got %v", n, err)
			}
		}
	})
}

func TestRemoveProbesLeavesThoseInUse(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	s := &memstore.Store{Now: func() time.Time { return now }}
	put := func(key string) {
		t.Helper()
		if err := sink.PutBytes(t.Context(), s, key, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	put("probe/died")
	put("shards/0/published.json")
	now = now.Add(time.Hour)
	put("probe/in-use")
	if err := sink.RemoveProbes(t.Context(), s, now); err != nil {
		t.Fatal(err)
	}
	var left []string
	for info, err := range s.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, info.Key)
	}
	if want := []string{"probe/in-use", "shards/0/published.json"}; !slices.Equal(left, want) {
		t.Errorf("left: %q, want %q", left, want)
	}
}

// sized notes the sizes of reads of an object of so many bytes.
type sized struct {
	sink.Object
	reads []int
}

func (s *sized) ReadAt(p []byte, off int64) (int, error) {
	s.reads = append(s.reads, len(p))
	return s.Object.ReadAt(p, off)
}

// On S3 each read is a request, and io.Copy into a file asks for 32 KiB at a time.
func TestSequentialReadsAreLarge(t *testing.T) {
	for _, size := range []int{0, 1, 100, 1 << 20, 9<<20 + 5} {
		data := strings.Repeat("0123456789abcdef", size/16+1)[:size]
		store := &memstore.Store{}
		if err := sink.PutBytes(t.Context(), store, "k", []byte(data)); err != nil {
			t.Fatal(err)
		}
		object, err := store.Open(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		s := &sized{Object: object}
		path := filepath.Join(t.TempDir(), "copy")
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(file, sink.Sequential(s))
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != data {
			t.Errorf("%d bytes: %d came, %v", size, len(got), err)
		}
		if most := size>>22 + 2; len(s.reads) > most {
			t.Errorf("%d bytes in %d reads: %v", size, len(s.reads), s.reads)
		}
	}
}
