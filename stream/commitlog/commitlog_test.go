package commitlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/audit"
	"giantstream/sink/memstore"
)

func TestHeadOfLongLogsNeedsFewRequests(t *testing.T) {
	for _, n := range []int64{0, 1, 2, 999, 1000, 1001, 2500, 7000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			store := &memstore.Store{}
			for seq := int64(1); seq <= n; seq++ {
				putManifest(t, store, &Manifest{Format: 1, Shard: 3, Seq: seq})
			}
			putManifest(t, store, &Manifest{Format: 1, Shard: 30, Seq: n + 5}) // a neighbour
			requests := 0
			store.Fail = func(op, _ string) error {
				if op != "read" {
					requests++
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
			if got != n || requests > 40 { // three of them look at the boundary
				t.Errorf("head is %d after %d requests, want %d", got, requests, n)
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
			data, _ := (&Manifest{Format: 1, Seq: 9}).Encode("")
			if err := sink.PutBytes(ctx, s, ManifestKey(0, 2), data); err != nil {
				t.Fatal(err)
			}
		}, "00000000000000000009.json, and lies in the place of"},
		{"later format", func(t *testing.T, s *memstore.Store) {
			putManifest(t, s, &Manifest{Format: ManifestFormat + 1, Seq: 2})
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
	mine := Identity{Name: "catalog", Shards: 4, Undirected: true, Settings: map[string]string{"a": "1", "b": "2"}}
	var first Identity
	for i := range 2 { // the first start and a later one
		got, err := EnsureIdentity(ctx, store, mine, false)
		if err != nil || len(got.ID) != 16 || i > 0 && got.ID != first.ID {
			t.Fatalf("%+v, before: %+v: %v", got, first, err)
		}
		first = got
	}
	for _, test := range []struct {
		want  Identity
		words string
	}{
		{Identity{Name: "other", Shards: 4, Undirected: true}, `named "catalog"`},
		{Identity{Name: "catalog", Shards: 5, Undirected: true}, "has 4 shards"},
		{Identity{Name: "catalog", Shards: 4}, "undirected"},
	} {
		_, err := EnsureIdentity(ctx, store, test.want, true)
		if !errors.Is(err, ErrIdentity) || !strings.Contains(err.Error(), test.words) {
			t.Errorf("%+v: %v", test.want, err)
		}
	}
	if err := ClaimIdentity(ctx, store, first); err != nil {
		t.Fatal(err)
	}
	changed := mine
	changed.Settings = map[string]string{"a": "1", "b": "3", "c": "new"}
	_, err := EnsureIdentity(ctx, store, changed, false)
	if want := `b was "2" and is "3"; c was "" and is "new"`; !errors.Is(err, ErrSettings) ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("changed settings: %v, want %s", err, want)
	}
	if got, err := EnsureIdentity(ctx, store, changed, true); err != nil || got.ID != first.ID {
		t.Errorf("accepted settings: %+v, %v", got, err)
	}
	if _, err := EnsureIdentity(ctx, store, changed, false); err != nil {
		t.Errorf("settings that were accepted: %v", err)
	}
	if other, err := EnsureIdentity(ctx, &memstore.Store{}, mine, false); err != nil || other.ID == first.ID {
		t.Errorf("another store has the id %q, %v", other.ID, err)
	}
}

// meeting is a store whose identity two workers read before either goes on.
type meeting struct {
	*memstore.Store
	readers *sync.WaitGroup
	met     *atomic.Int32
}

func (m meeting) Open(ctx context.Context, key string) (sink.Object, error) {
	o, err := m.Store.Open(ctx, key)
	if key == identityKey && m.met.Add(1) <= 2 {
		m.readers.Done()
		m.readers.Wait()
	}
	return o, err
}

// Of two workers with different settings that start at once, one claims the store. The other one is told what differs.
func TestTwoFirstWorkers(t *testing.T) {
	for _, stored := range []string{"nothing", "format 1", "settings that both mean to replace"} {
		for range 20 {
			m := meeting{&memstore.Store{}, &sync.WaitGroup{}, &atomic.Int32{}}
			identity := func(value string) Identity {
				return Identity{Name: "catalog", Shards: 4, Settings: map[string]string{"mapping": value}}
			}
			switch stored {
			case "format 1":
				old := []byte(`{"format":1,"name":"catalog","shards":4}`)
				if err := sink.PutBytes(t.Context(), m.Store, identityKey, old); err != nil {
					t.Fatal(err)
				}
			case "settings that both mean to replace":
				old, err := EnsureIdentity(t.Context(), m.Store, identity("old"), false)
				if err == nil {
					err = ClaimIdentity(t.Context(), m.Store, old)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			m.readers.Add(2)
			var got [2]Identity
			var errs [2]error
			var workers sync.WaitGroup
			for i, value := range []string{"a", "b"} {
				workers.Go(func() {
					if got[i], errs[i] = EnsureIdentity(t.Context(), m, identity(value), true); errs[i] == nil {
						errs[i] = ClaimIdentity(t.Context(), m, got[i])
					}
				})
			}
			workers.Wait()
			winner := 0
			if errs[0] != nil {
				winner = 1
			}
			says := `mapping was "a" and is "b"`
			if winner == 1 {
				says = `mapping was "b" and is "a"`
			}
			if err := errs[1-winner]; errs[winner] != nil || !errors.Is(err, ErrSettings) ||
				!strings.Contains(err.Error(), says) {
				t.Fatalf("%s: %v; want one error, which says %s", stored, errs, says)
			}
			have, err := LoadIdentity(t.Context(), m.Store)
			if err != nil || !maps.Equal(have.Settings, got[winner].Settings) || !have.Claimed {
				t.Fatalf("%s: the store has %+v, %v; the winner has %+v", stored, have, err, got[winner])
			}
			if _, err := EnsureIdentity(t.Context(), m.Store, got[1-winner], false); !errors.Is(err, ErrSettings) {
				t.Errorf("%s: the loser starts again: %v", stored, err)
			}
		}
	}
}

// An input keeps its number, whichever others come and go.
func TestFurtherInputsAreNumberedOnce(t *testing.T) {
	store := &memstore.Store{}
	for _, step := range []struct{ named, want []string }{
		{nil, nil},
		{[]string{"stock"}, []string{"stock"}},
		{[]string{"prices", "stock"}, []string{"stock", "prices"}},
		{[]string{"prices"}, []string{"stock", "prices"}},
		{[]string{"orders", "stock"}, []string{"stock", "prices", "orders"}},
	} {
		id, err := EnsureIdentity(t.Context(), store, Identity{Name: "catalog", Shards: 1, Inputs: step.named}, false)
		if err != nil || !slices.Equal(id.Inputs, step.want) {
			t.Errorf("named %v: got %v, %v, want %v", step.named, id.Inputs, err, step.want)
		}
		if have, err := LoadIdentity(t.Context(), store); err != nil || !slices.Equal(have.Inputs, step.want) {
			t.Errorf("the store has %v, %v, want %v", have.Inputs, err, step.want)
		}
	}
}

// Topics of vectors can be added, and vectors of a topic that was read without them cannot.
func TestVectorsOfNewTopicsExtendAStore(t *testing.T) {
	with := func(fields, vectors string, inputs ...string) Identity {
		s := map[string]string{"ingest.nodes.id": "id"}
		if fields != "" {
			s["ingest.attributes.fields"] = fields
		}
		if vectors != "" {
			s["ingest.attributes.vectors"] = vectors
		}
		return Identity{Name: "catalog", Shards: 1, Settings: s, Inputs: inputs}
	}
	store := &memstore.Store{}
	for i, step := range []struct {
		id      Identity
		refused bool
	}{
		{with("", ""), false},
		{with("prices/price:number", "", "prices"), false},
		{with("prices/price:number", "prices/image=v:2", "prices"), true},
		{with("prices/price:number", "pictures/image=v:2", "prices", "pictures"), false},
		{with("prices/price:number", "pictures/image=v:2, texts/text=v:3", "prices", "pictures", "texts"), false},
		{with("prices/price:number", "pictures/image=v:2, texts/text=v:3, texts/more=w:3", "prices", "pictures", "texts"),
			true},
		{with("prices/price:number", "pictures/image=v:3, texts/text=v:3", "prices", "pictures", "texts"), true},
		{with("prices/price:number", "", "prices"), true},
	} {
		id, err := EnsureIdentity(t.Context(), store, step.id, false)
		if errors.Is(err, ErrSettings) != step.refused || !step.refused && err != nil {
			t.Errorf("step %d: %v", i, err)
		}
		if i == 0 {
			if err := ClaimIdentity(t.Context(), store, id); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Workers that upgrade a store at once agree on its id.
func TestAStoreOfAnOlderVersionGetsAnID(t *testing.T) {
	ctx := context.Background()
	store := &memstore.Store{}
	old := []byte(`{"format":1,"name":"catalog","shards":4,"undirected":true}`)
	mine := Identity{Name: "catalog", Shards: 4, Undirected: true, Settings: map[string]string{"a": "1"}}
	ids := map[string]bool{}
	for range 3 {
		if err := sink.PutBytes(ctx, store, identityKey, old); err != nil { // as the others have read it
			t.Fatal(err)
		}
		got, err := EnsureIdentity(ctx, store, mine, false)
		if err != nil {
			t.Fatal(err)
		}
		ids[got.ID] = true
	}
	if len(ids) != 1 || ids[""] {
		t.Errorf("ids %v, want one", ids)
	}
	if err := sink.PutBytes(ctx, store, "shards/0/anything", nil); err != nil { // by a worker of an older release
		t.Fatal(err)
	}
	mine.Settings = map[string]string{"a": "2"}
	if _, err := EnsureIdentity(ctx, store, mine, false); !errors.Is(err, ErrSettings) {
		t.Errorf("settings changed after the upgrade: %v", err)
	}
}

// The id of a store of format 1 is sealed; that of an older release, 16 digits alone, stays readable.
func TestDamagedIDIsNoticed(t *testing.T) {
	ctx := context.Background()
	identity := func(id string) []byte {
		data, err := json.Marshal(Identity{Format: 1 + len(id)/idDigits, Name: "catalog", Shards: 4, ID: id})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	const id = "8a41c07be25d9f3c"
	sealed, err := seal.JSON(drawnID{id}, seal.Place{Pipeline: id, Key: idKey})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, says string
		unsealed   int64
		stored     []byte
	}{
		{"sealed", "", 0, sealed},
		{"of an older release", "", 1, []byte(id)},
		{"cut off", "damaged", 0, sealed[:30]},
		{"another id", "damaged", 0, bytes.Replace(sealed, []byte("8a41"), []byte("8a42"), 1)},
		{"a JSON document without a checksum", "damaged", 0, []byte(`{"id": "8a41c07be25d9f3c"}`)},
		{"empty", "damaged", 0, nil},
		{"no id", "damaged", 0, []byte("8a41c07be25d9f3x")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := &memstore.Store{}
			put := func(key string, data []byte) {
				if err := sink.PutBytes(ctx, store, key, data); err != nil {
					t.Fatal(err)
				}
			}
			check := func(repair bool) *audit.Audit {
				a, err := audit.New(ctx, store)
				if err != nil {
					t.Fatal(err)
				}
				a.May = func(audit.Finding) bool { return repair }
				if err := AuditID(ctx, a); err != nil {
					t.Fatal(err)
				}
				return a
			}
			put(identityKey, identity(""))
			put(idKey, tt.stored)
			want := Identity{Name: "catalog", Shards: 4}
			got, err := EnsureIdentity(ctx, store, want, false)
			if tt.says == "" && (err != nil || got.ID != id) {
				t.Errorf("id %q, %v", got.ID, err)
			}
			if tt.says != "" && (!errors.Is(err, sink.ErrDamaged) || !strings.Contains(err.Error(), "remove the object")) {
				t.Errorf("error %v, want ErrDamaged and what to do", err)
			}
			a := check(false)
			if a.Unsealed != tt.unsealed || (a.Damage() > 0) != (tt.says != "") {
				t.Errorf("findings %+v, %d without a checksum", a.Findings, a.Unsealed)
			}
			if tt.says == "" {
				return
			}
			put(identityKey, identity(id)) // pipeline.json has the id: it is written again
			if a := check(true); a.Damage() > 0 || len(a.Findings) != 1 {
				t.Errorf("not repaired: %+v", a.Findings)
			}
			if again, err := sink.ReadAll(ctx, store, idKey); err != nil || !bytes.Equal(again, sealed) {
				t.Errorf("repaired as %q, %v", again, err)
			}
		})
	}
	store := &memstore.Store{}
	for key, data := range map[string][]byte{identityKey: identity("00000000000000aa"), idKey: []byte(id)} {
		if err := sink.PutBytes(ctx, store, key, data); err != nil {
			t.Fatal(err)
		}
	}
	a, err := audit.New(ctx, store)
	if err == nil {
		err = AuditID(ctx, a)
	}
	if err != nil || a.Damage() != 1 {
		t.Errorf("two ids that differ: %v, %v", a, err)
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
		{`{"generation":2,"seq":3}`, Published{Generation: 2, Seq: 3}},
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
	c, err := OpenCursor(ctx, store, 1)
	if err != nil {
		t.Fatal(err)
	}
	late := c
	want := Published{Generation: 4, Seq: 5, Format: "int8"}
	if err := c.Move(ctx, want, "a"); err != nil {
		t.Fatal(err)
	}
	want.Writer, want.Moves = "a", 1
	if got, err := LoadPublished(ctx, store, 1); err != nil || got != want || c.Published != want {
		t.Errorf("after saving: %+v and %+v, %v", got, c.Published, err)
	}
	if err := late.Move(ctx, Published{Generation: 4, Seq: 2}, "b"); !errors.Is(err, sink.ErrChanged) {
		t.Errorf("a cursor that another follower has moved: %v", err)
	}
	if err := c.Move(ctx, Published{Generation: 4, Seq: 6}, "a"); err != nil {
		t.Errorf("moved twice: %v", err)
	}
}

func FuzzDecodeManifest(f *testing.F) {
	rows := Object{Key: "shards/1/rows/x.parquet", Rows: 3, Bytes: 9, Checksum: sink.Checksum{CRC32C: 7}}
	data, _ := (&Manifest{Format: 1, Shard: 1, Seq: 2, Rows: 3, Next: map[string]int64{"nodes": 4},
		Objects: []Object{rows}}).Encode("")
	f.Add(data)
	f.Add([]byte(`{"format":3}`))
	f.Add([]byte(`{"format":1,"seq":1,"objects":[{"key":"../x","rows":-1}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode(data, seal.Place{})
		if err != nil {
			return
		}
		again, err := m.Encode("")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(again, seal.Place{}); err != nil {
			t.Errorf("what was accepted is not accepted again: %v", err)
		}
	})
}
