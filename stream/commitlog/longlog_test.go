package commitlog

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/dirstore"
	"giantstream/sink/memstore"
	"giantstream/sink/s3store"
)

// countingStore counts requests.
type countingStore struct {
	sink.Store
	reads, lists atomic.Int64
}

func (s *countingStore) Open(ctx context.Context, key string) (sink.Object, error) {
	s.reads.Add(1)
	return s.Store.Open(ctx, key)
}

func (s *countingStore) List(ctx context.Context, prefix, after string) iter.Seq2[sink.Info, error] {
	s.lists.Add(1)
	return s.Store.List(ctx, prefix, after)
}

// measure says how long the calls take that open a log and look at it, and how many requests they need.
func measure(t *testing.T, store sink.Store, what string, head int64) {
	t.Helper()
	ctx := t.Context()
	for _, call := range []struct {
		name string
		call func(s sink.Store) error
	}{
		{"open: the head", func(s sink.Store) error {
			m, err := Head(ctx, s, 0)
			if err == nil && m.Seq != head {
				err = fmt.Errorf("the log ends at %d, want %d", m.Seq, head)
			}
			return err
		}},
		{"a cut at the head", func(s sink.Store) error { _, err := CurrentCut(ctx, s, 1); return err }},
		{"a follower: the last ten manifests", func(s sink.Store) error {
			last := int64(0)
			for s, err := range Segments(ctx, s, 0, head-10, 0) {
				if err != nil {
					return err
				}
				last = s.To
			}
			if last != head {
				return fmt.Errorf("they end at %d", last)
			}
			return nil
		}},
		{"status: the newest objects", func(s sink.Store) error { _, err := Missing(ctx, s, 0, head, 32); return err }},
		{"the segments of the newest cut", func(s sink.Store) error {
			_, err := Cut{0: head}.segments(ctx, s, 0)
			return err
		}},
		{"a new compactor with nothing to merge", func(s sink.Store) error {
			_, err := testCompactor(s, time.Unix(1, 0)).Merge(ctx)
			return err
		}},
		{"a collector of orphans", func(s sink.Store) error { _, err := NewOrphans(s, 0).Remove(ctx); return err }},
	} {
		counting := &countingStore{Store: store}
		start := time.Now()
		if err := call.call(counting); err != nil {
			t.Fatalf("%s, %s: %v", what, call.name, err)
		}
		t.Logf("%s, %s: %.3f s, %d reads, %d listings", what, call.name, time.Since(start).Seconds(), counting.reads.Load(),
			counting.lists.Load())
	}
}

func envCount(t *testing.T, name string, otherwise int64) int64 {
	n, err := strconv.ParseInt(os.Getenv(name), 10, 64)
	if os.Getenv(name) == "" {
		return otherwise
	}
	if err != nil || n < 200 {
		t.Fatalf("%s must be a number from 200 on", name)
	}
	return n
}

// A log of GIANTSTREAM_MANIFESTS manifests in a directory is merged and folded by the program's own code.
func TestLongLogIsFolded(t *testing.T) {
	dir := t.TempDir()
	store, err := dirstore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(ManifestKey(0, 1))), 0o700); err != nil {
		t.Fatal(err)
	}
	foldLongLog(t, store, envCount(t, "GIANTSTREAM_MANIFESTS", 2000), // each takes a file
		func(key string, data []byte) error {
			return os.WriteFile(filepath.Join(dir, key), data, 0o600) // and no sync
		})
}

// The same with GIANTSTREAM_MANIFESTS_S3 manifests on the server that GIANTSTREAM_REAL_S3 names.
func TestRealLongLogIsFolded(t *testing.T) {
	n := envCount(t, "GIANTSTREAM_MANIFESTS_S3", 1100)
	endpoint, bucket := os.Getenv("GIANTSTREAM_REAL_S3"), os.Getenv("GIANTSTREAM_REAL_S3_BUCKET")
	if endpoint == "" {
		t.Skip("needs an S3 server: make test-real")
	}
	ctx := t.Context()
	store, err := s3store.Open(ctx, bucket, fmt.Sprintf("long-%d", time.Now().UnixNano()), // the bucket outlives the test
		s3store.Options{Endpoint: endpoint, PathStyle: true})
	if err != nil {
		t.Fatal(err)
	}
	var puts errgroup.Group
	puts.SetLimit(8)
	foldLongLog(t, store, n, func(key string, data []byte) error {
		puts.Go(func() error { return store.Create(ctx, key, data) })
		if key == ManifestKey(0, n) {
			return puts.Wait()
		}
		return nil
	})
}

// foldLongLog writes a log of n manifests with put, and merges and folds it.
func foldLongLog(t *testing.T, store sink.Store, n int64, put func(key string, data []byte) error) {
	t.Helper()
	var prev *Manifest
	for seq := int64(1); seq <= n; seq++ {
		m := &Manifest{Format: ManifestFormat, Seq: seq, Writer: "w-abc", Next: map[string]int64{"nodes": seq},
			Created: time.Unix(seq, 0)}
		m.Follow(prev)
		data, err := m.Encode("")
		if err == nil {
			err = put(ManifestKey(0, seq), data)
		}
		if err != nil {
			t.Fatal(err)
		}
		prev = m
	}
	putCheckpoint(t, store, 1, n)
	c := testCompactor(store, time.Unix(n, 0))
	start := time.Now()
	if _, err := c.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("merged in %.1f s", time.Since(start).Seconds())
	measure(t, store, fmt.Sprintf("%d manifests", n), n)
	start = time.Now()
	for passes := 1; ; passes++ {
		removed, err := c.Fold(t.Context(), FoldOptions{Keep: n, History: 1000 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if removed.Objects == 0 {
			t.Logf("folded in %.1f s and %d passes", time.Since(start).Seconds(), passes-1)
			break
		}
	}
	left := manifestNumbers(t, store)
	if want := (n - 1000) / 64 * 64; left[0] != want+1 {
		t.Errorf("the log begins at %d, want %d", left[0], want+1)
	}
	measure(t, store, fmt.Sprintf("%d manifests, of which %d are left", n, len(left)), n)
}

// blockStore has the documents of the merged blocks of a long log, which it makes when they are read or listed.
type blockStore struct {
	*memstore.Store
	head int64
}

func (s *blockStore) block(key string) (c compaction, ok bool) {
	for level := 1; level <= compactionLevels; level++ {
		from, ok := parseCompactionKey(0, level, key)
		if to := from + blockSize(level) - 1; ok && to <= s.head {
			return compaction{Format: compactionFormat, Level: level, From: from, To: to, Created: time.Unix(to, 0)}, true
		}
	}
	return c, false
}

func (s *blockStore) Open(ctx context.Context, key string) (sink.Object, error) {
	c, ok := s.block(key)
	if !ok {
		return s.Store.Open(ctx, key)
	}
	data, err := seal.JSON(c, sink.PlaceOf(s, key))
	one := &memstore.Store{}
	if err == nil {
		err = sink.PutBytes(ctx, one, key, data)
	}
	if err != nil {
		return nil, err
	}
	return one.Open(ctx, key)
}

func (s *blockStore) List(ctx context.Context, prefix, after string) iter.Seq2[sink.Info, error] {
	for level := 1; level <= compactionLevels; level++ {
		if prefix != compactionPrefix(0, level) {
			continue
		}
		return func(yield func(sink.Info, error) bool) {
			size := blockSize(level)
			start := int64(0) // skip to the first key after `after`
			if after != "" {
				number := strings.TrimSuffix(strings.TrimPrefix(after, prefix), ".json")
				if n, err := strconv.ParseInt(number, 10, 64); err == nil && n >= 0 {
					start = n / size
				}
			}
			for from := start*size + 1; from+size-1 <= s.head; from += size {
				key := compactionKey(0, level, from)
				if key > after && !yield(sink.Info{Key: key, Size: 200}, nil) {
					return
				}
			}
		}
	}
	return s.Store.List(ctx, prefix, after)
}

// A log of a year of one-second windows opens as fast as a log of a day. The documents of the blocks are made when they
// are read; the boundary, a day of manifests and a checkpoint are in memory.
func TestYearOfManifests(t *testing.T) {
	year := envCount(t, "GIANTSTREAM_YEAR", 365*24*3600)
	history := min(year/2, 24*3600)
	if testing.Short() {
		history = min(history, 3600)
	}
	memory := &memstore.Store{}
	store := &blockStore{Store: memory, head: year}
	boundary := (year - history) / 64 * 64
	prev := &Manifest{Format: ManifestFormat, Seq: boundary, Writer: "w-abc", Previous: strings.Repeat("ab", 32)}
	if _, err := prev.Encode(""); err != nil {
		t.Fatal(err)
	}
	if err := (Boundary{}).move(t.Context(), memory, Boundary{Seq: boundary, Digest: prev.digest}); err != nil {
		t.Fatal(err)
	}
	for seq := boundary + 1; seq <= year; seq++ {
		m := &Manifest{Format: ManifestFormat, Seq: seq, Writer: "w-abc", Next: map[string]int64{"nodes": seq},
			Created: time.Unix(seq, 0)}
		m.Follow(prev)
		data, err := m.Encode("")
		if err == nil {
			err = sink.PutBytes(t.Context(), memory, ManifestKey(0, seq), data)
		}
		if err != nil {
			t.Fatal(err)
		}
		prev = m
	}
	putCheckpoint(t, memory, 1, year)
	measure(t, store, fmt.Sprintf("%d manifests, of which %d are left", year, year-boundary), year)
	if removed, err := testCompactor(store, time.Unix(year, 0)).Fold(t.Context(),
		FoldOptions{Keep: year, History: time.Duration(history) * time.Second}); err != nil || removed.Objects > 64 {
		t.Errorf("%d manifests removed: %v", removed.Objects, err)
	}
}
