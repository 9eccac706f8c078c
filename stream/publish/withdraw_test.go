package publish

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"giantstream/internal/race"
	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
)

// choices is a shard whose generations come and are withdrawn, under changes and failures.
type choices struct {
	t     *testing.T
	rng   *rand.Rand
	store *memstore.Store
	to    *topic
	texts map[string]string // of live nodes
	rows  map[string]int64  // the manifest of each node's newest row
	// prices are those of live nodes that have one, names the attributes that are published.
	prices   map[string]int
	names    []string
	saving   time.Duration // for how long the cursor may stay behind
	seq      int64
	newest   int64
	older    *Model // served before that, nil for none
	served   *Model
	follower *Follower
	// known is what a process knows that looked before the last disturbance.
	known Model
	// settling: every process looks at each step.
	settling bool
}

var errBroker = errors.New("the broker is away")

func newChoices(t *testing.T, seed uint64) *choices {
	t.Helper()
	w := &choices{t: t, rng: rand.New(rand.NewPCG(seed, 9)), store: &memstore.Store{}, to: &topic{},
		texts: map[string]string{}, rows: map[string]int64{}, prices: map[string]int{},
		saving: time.Duration(seed%2) * time.Hour}
	w.to.fail = func(int) error {
		if w.rng.IntN(8) == 0 {
			return errBroker
		}
		return nil
	}
	w.to.arrive = func(records int) int { return w.rng.IntN(records + 1) }
	w.change(20)
	w.served = w.generation()
	w.start()
	return w
}

// start is a follower of a process that knows nothing of the one before. Some processes learn late what is served.
func (w *choices) start() {
	known := w.standing()
	if w.known.Generation > 0 && w.rng.IntN(2) == 0 {
		known = w.known
	}
	w.follower = follower(w.store, w.to, func() *Model {
		if w.settling || w.rng.IntN(4) == 0 {
			known = w.standing()
		}
		m := known
		return &m
	})
	w.follower.opts.SaveEvery = func() time.Duration { return w.saving }
}

// standing is what a process finds that looks now.
func (w *choices) standing() Model {
	m := *w.served
	m.PassedOver, m.AsOf, m.Attributes = w.newest, time.Now(), w.names
	return m
}

// change commits a window.
func (w *choices) change(n int) {
	w.t.Helper()
	changed := map[string]string{}
	for range n {
		id := fmt.Sprintf("n%02d", w.rng.IntN(40))
		changed[id] = "xxxxxxxxx"[:w.rng.IntN(9)]
	}
	var batch []rows.Row
	var alone []rows.Attributes
	w.seq++
	for i := range 40 { // ascending
		id := fmt.Sprintf("n%02d", i)
		text, ok := changed[id]
		if !ok {
			if _, live := w.texts[id]; live && w.rng.IntN(20) < n {
				alone = append(alone, rows.Attributes{NodeID: id, Attributes: w.price(id), EventTime: w.seq})
			}
			continue
		}
		row := rows.Row{NodeID: id, Text: text, Deleted: text == "", EventTime: w.seq}
		w.rows[id], w.texts[id] = w.seq, text
		if row.Deleted {
			delete(w.texts, id)
			delete(w.prices, id)
		} else if row.Attributes = w.price(id); row.Attributes == "{}" {
			row.Attributes = ""
		}
		batch = append(batch, row)
	}
	commitRows(w.t, w.store, w.seq, batch, alone)
}

// price gives a node another price, or none, and returns its attributes.
func (w *choices) price(id string) string {
	delete(w.prices, id)
	if w.rng.IntN(4) == 0 {
		return "{}"
	}
	w.prices[id] = w.rng.IntN(1000)
	return fmt.Sprintf(`{"brand":"b","price":%d}`, w.prices[id])
}

// generation makes one of everything that is committed.
func (w *choices) generation() *Model {
	w.t.Helper()
	w.newest++
	var nodes []embedding.Record
	for i := range 40 {
		id := fmt.Sprintf("n%02d", i)
		if text, ok := w.texts[id]; ok {
			nodes = append(nodes, embedded(id, w.rows[id], float32(100*w.newest+int64(len(text)))))
		}
	}
	return generationAt(w.t, w.store, w.newest, w.seq, nodes...)
}

// step lets the follower work.
func (w *choices) step() {
	w.t.Helper()
	if w.rng.IntN(6) == 0 {
		w.start()
	}
	_, err := w.follower.Step(w.t.Context())
	if err != nil && !errors.Is(err, errBroker) {
		w.t.Fatal(err)
	}
}

// settle lets the follower come to rest, and compares the end of the topic with what it must be.
func (w *choices) settle(what string) {
	w.t.Helper()
	w.settling = true
	defer func() { w.settling = false }()
	for rest := 0; rest < 2; {
		before := len(w.to.all)
		done, err := w.follower.Step(w.t.Context())
		if err != nil && !errors.Is(err, errBroker) {
			w.t.Fatal(err)
		}
		if rest++; done || err != nil || len(w.to.all) > before {
			rest = 0
		}
	}
	last := map[string]embedding.Record{}
	for _, r := range w.to.records {
		last[r.NodeID] = r
	}
	for id, r := range last {
		if _, live := w.texts[id]; live == r.Deleted {
			w.t.Fatalf("%s: %s is live %v, its record %+v", what, id, live, r)
		}
	}
	for id, text := range w.texts {
		want := w.served.Generation
		r, ok := last[id]
		if !ok || r.Generation != want || r.Vector[0] != float32(100*want+int64(len(text))) {
			w.t.Fatalf("%s: %s with %d letters has %+v, want generation %d", what, id, len(text), r, want)
		}
	}
	w.wantAttributes(what)
}

// wantAttributes compares what readers of the topic have of attributes with what they must have: of one that has read
// all along, with a table for each generation, and of one that begins now and finds the newest record of each key. An
// embedding gives a node a row without attributes, unless it has one; attributes go to rows that are there.
func (w *choices) wantAttributes(what string) {
	w.t.Helper()
	want := map[string]string{}
	for id := range w.texts {
		price, ok := w.prices[id]
		switch {
		case !ok || len(w.names) == 0:
			want[id] = ""
		case len(w.names) == 1:
			want[id] = fmt.Sprintf(`{"price":%d}`, price)
		default:
			want[id] = fmt.Sprintf(`{"brand":"b","price":%d}`, price)
		}
	}
	read := func(all []any) map[string]string {
		tables := map[int64]map[string]string{}
		for _, one := range all {
			switch r := one.(type) {
			case embedding.Record:
				if tables[r.Generation] == nil {
					tables[r.Generation] = map[string]string{}
				}
				if !r.Deleted {
					tables[r.Generation][r.NodeID] += ""
					continue
				}
				for _, table := range tables {
					delete(table, r.NodeID)
				}
			case embedding.Attributes:
				for _, table := range tables {
					if _, ok := table[r.NodeID]; ok {
						table[r.NodeID] = r.Attributes
					}
				}
			}
		}
		return tables[w.served.Generation]
	}
	if got := read(w.to.all); !maps.Equal(got, want) {
		w.t.Fatalf("%s, %v: a reader has\n%v, want\n%v", what, w.names, got, want)
	}
	var compacted []any
	seen := map[string]bool{}
	for _, one := range slices.Backward(w.to.all) {
		key := ""
		switch r := one.(type) {
		case embedding.Record:
			key = "embedding of " + r.NodeID
		case embedding.Attributes:
			key = "attributes of " + r.NodeID
		}
		if !seen[key] {
			seen[key], compacted = true, append(compacted, one)
		}
	}
	slices.Reverse(compacted)
	if got := read(compacted); !maps.Equal(got, want) {
		w.t.Fatalf("%s, %v: a reader of the compacted topic has\n%v, want\n%v", what, w.names, got, want)
	}
}

// disturb brings a generation or withdraws one, and nodes change while the follower works.
func (w *choices) disturb() (what string) {
	w.known = w.standing()
	switch w.rng.IntN(4) {
	case 3:
		w.names = [][]string{nil, {"price"}, {"brand", "price"}}[w.rng.IntN(3)]
		what = "other attributes"
	case 0:
		w.older, w.served = w.served, w.generation()
		what = "a generation"
	case 1:
		if w.older != nil {
			w.older, w.served = nil, w.older
		}
		what = "withdrawn"
	case 2:
		what = "changes"
	}
	for range w.rng.IntN(6) {
		w.change(1 + w.rng.IntN(8))
		w.step()
	}
	return what
}

// seeds are those that a test of choices tries.
func seeds() uint64 {
	switch {
	case race.Enabled:
		return 4
	case testing.Short():
		return 15
	}
	return 60
}

// Whatever is served or withdrawn, while nodes change, the broker fails and followers die, halfway through a generation
// among other places: in the end every node has the newest text in the generation that is served.
func TestWithdrawnGenerationsConverge(t *testing.T) {
	for seed := range seeds() {
		w := newChoices(t, seed)
		w.settle("the first generation")
		for range 12 {
			what := w.disturb()
			if w.rng.IntN(4) == 0 {
				w.settle(fmt.Sprintf("seed %d, %s", seed, what))
			}
		}
		w.settle(fmt.Sprintf("seed %d, the end", seed))
	}
}

// The manifest of a node's record never decreases along the topic: no reader sees a node go back in time, whatever
// generation is served or withdrawn halfway, and whether followers die or brokers fail.
func TestNoNodeGoesBackInTime(t *testing.T) {
	for seed := range seeds() {
		w := newChoices(t, seed)
		w.settle("the first generation")
		for range 14 {
			w.disturb()
		}
		w.settle("the end")
		at := map[string]embedding.Record{}
		for i, r := range w.to.records {
			if before := at[r.NodeID]; r.Seq < before.Seq {
				t.Fatalf("seed %d: record %d, %+v, comes after %+v", seed, i, r, before)
			}
			at[r.NodeID] = r
		}
	}
}

// A cursor of an earlier release may say that a share of the nodes has a generation on trial. All nodes are published
// again, so that they have the generation that is served.
func TestASharedCanaryOfAnEarlierReleaseEnds(t *testing.T) {
	store, to := &memstore.Store{}, &topic{}
	g1 := generationAt(t, store, 1, 0)
	f := follower(store, to, func() *Model { return g1 })
	commit(t, store, 1, [2]string{"a", "a"}, [2]string{"b", "b"})
	catchUp(t, f)
	sent := len(to.records)
	var cursor map[string]any
	data, err := sink.ReadAll(t.Context(), store, "shards/3/published.json")
	if err == nil {
		err = json.Unmarshal(data, &cursor)
	}
	if err != nil {
		t.Fatal(err)
	}
	delete(cursor, "checksum")
	delete(cursor, "stored_as")
	cursor["canary"], cursor["canary_share"] = 2, 0.05
	if data, err = seal.JSON(cursor, seal.Place{}); err != nil {
		t.Fatal(err)
	}
	if err := sink.PutBytes(t.Context(), store, "shards/3/published.json", data); err != nil {
		t.Fatal(err)
	}
	catchUp(t, follower(store, to, func() *Model { return g1 }))
	if again := len(to.records) - sent; again != 2 {
		t.Errorf("%d records are published again, want those of a and b", again)
	}
	if at, err := commitlog.LoadPublished(t.Context(), store, shard); err != nil || at.Mixed || at.Seq != 1 {
		t.Errorf("the cursor is %+v, %v", at, err)
	}
}
