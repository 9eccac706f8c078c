package stream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"giantstream/sink"
	"giantstream/sink/memstore"
)

func putManifest(t testing.TB, store sink.Store, m *Manifest) {
	t.Helper()
	data, err := m.encode()
	if err == nil {
		err = store.Create(context.Background(), ManifestKey(m.Shard, m.Seq), data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestHeadOfLongLogsNeedsFewRequests(t *testing.T) {
	for _, n := range []int64{0, 1, 2, 999, 1000, 1001, 2500, 7000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			store := &memstore.Store{}
			for seq := int64(1); seq <= n; seq++ {
				putManifest(t, store, &Manifest{Format: 1, Shard: 3, Seq: seq})
			}
			putManifest(t, store, &Manifest{Format: 1, Shard: 30, Seq: n + 5}) // a neighbour
			lists := 0
			store.Fail = func(op, _ string) error {
				if op == "list" {
					lists++
				}
				return nil
			}
			head, err := Head(context.Background(), store, 3)
			if err != nil {
				t.Fatal(err)
			}
			var got int64
			if head != nil {
				got = head.Seq
			}
			if got != n || lists > 10 {
				t.Errorf("head is %d after %d lists, want %d", got, lists, n)
			}
		})
	}
}

func TestDamagedLogIsRefused(t *testing.T) {
	ctx := context.Background()
	good := Manifest{Format: 1, Shard: 0, Seq: 1}
	for _, test := range []struct {
		name   string
		damage func(*testing.T, *memstore.Store)
		words  string
	}{
		{"gap", func(t *testing.T, s *memstore.Store) {
			putManifest(t, s, &Manifest{Format: 1, Seq: 3})
		}, "has manifest 3 but not 2"},
		{"stray object", func(t *testing.T, s *memstore.Store) {
			if err := sink.PutBytes(ctx, s, manifestPrefix(0)+"2.json", []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}, "no manifest's name"},
		{"other number inside", func(t *testing.T, s *memstore.Store) {
			data, _ := (&Manifest{Format: 1, Seq: 9}).encode()
			if err := sink.PutBytes(ctx, s, ManifestKey(0, 2), data); err != nil {
				t.Fatal(err)
			}
		}, "holds shard 0, sequence 9"},
		{"later format", func(t *testing.T, s *memstore.Store) {
			putManifest(t, s, &Manifest{Format: 2, Seq: 2})
		}, "another release"},
		{"rows do not add up", func(t *testing.T, s *memstore.Store) {
			putManifest(t, s, &Manifest{Format: 1, Seq: 2, Rows: 5})
		}, "counts 5 rows"},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := &memstore.Store{}
			putManifest(t, store, &good)
			test.damage(t, store)
			var seen int
			var failure error
			for m, err := range Manifests(ctx, store, 0, 0) {
				if failure = err; err == nil && m.Seq == 1 {
					seen++
				}
			}
			if seen != 1 || failure == nil || !strings.Contains(failure.Error(), test.words) {
				t.Errorf("saw %d good manifests, then %v; want %q", seen, failure, test.words)
			}
		})
	}
}

func TestManifestsAfter(t *testing.T) {
	store := &memstore.Store{}
	for seq := int64(1); seq <= 5; seq++ {
		putManifest(t, store, &Manifest{Format: 1, Seq: seq})
	}
	var got []int64
	for m, err := range Manifests(context.Background(), store, 0, 3) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, m.Seq)
	}
	if fmt.Sprint(got) != "[4 5]" {
		t.Errorf("manifests after 3: %v", got)
	}
}

func TestEnsureIdentity(t *testing.T) {
	ctx := context.Background()
	store := &memstore.Store{}
	mine := Identity{Name: "catalog", Shards: 4, Undirected: true}
	for range 2 { // the first start and a later one
		if err := EnsureIdentity(ctx, store, mine); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		want  Identity
		words string
	}{
		{Identity{Name: "other", Shards: 4, Undirected: true}, `named "catalog"`},
		{Identity{Name: "catalog", Shards: 5, Undirected: true}, "has 4 shards"},
		{Identity{Name: "catalog", Shards: 4}, "undirected"},
	} {
		err := EnsureIdentity(ctx, store, test.want)
		if !errors.Is(err, ErrIdentity) || !strings.Contains(err.Error(), test.words) {
			t.Errorf("%+v: %v", test.want, err)
		}
	}
}

func TestPublishedCursorIsAHint(t *testing.T) {
	ctx := context.Background()
	store := &memstore.Store{}
	for _, test := range []struct {
		data string
		want Published
	}{
		{"", Published{}},
		{"{garbage", Published{}},
		{`{"generation":-1,"seq":3}`, Published{}},
		{`{"generation":2,"seq":3}`, Published{2, 3}},
	} {
		if test.data != "" {
			if err := sink.PutBytes(ctx, store, publishedKey(1), []byte(test.data)); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := LoadPublished(ctx, store, 1); err != nil || got != test.want {
			t.Errorf("%q: %+v, %v", test.data, got, err)
		}
	}
	if err := SavePublished(ctx, store, 1, Published{4, 5}); err != nil {
		t.Fatal(err)
	}
	if got, err := LoadPublished(ctx, store, 1); err != nil || got != (Published{4, 5}) {
		t.Errorf("after saving: %+v, %v", got, err)
	}
}

func FuzzDecodeManifest(f *testing.F) {
	data, _ := (&Manifest{Format: 1, Shard: 1, Seq: 2, Rows: 3, Next: map[string]int64{"nodes": 4},
		Objects: []ManifestObject{{Key: "shards/1/rows/x.parquet", Rows: 3, Bytes: 9, CRC32C: 7}}}).encode()
	f.Add(data)
	f.Add([]byte(`{"format":2}`))
	f.Add([]byte(`{"format":1,"seq":1,"objects":[{"key":"../x","rows":-1}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeManifest(data)
		if err != nil {
			return
		}
		again, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeManifest(again); err != nil {
			t.Errorf("what was accepted is not accepted again: %v", err)
		}
	})
}
