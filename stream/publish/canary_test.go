package publish

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"giantstream/sink/embedding"
	"giantstream/sink/memstore"
)

// trials is a shard whose generations come, are tried, and are promoted or taken back, under changes and failures.
type trials struct {
	t        *testing.T
	rng      *rand.Rand
	store    *memstore.Store
	to       *topic
	texts    map[string]string // of live nodes
	rows     map[string]int64  // the manifest of each node's newest row
	saving   time.Duration     // for how long the cursor may stay behind
	seq      int64
	newest   int64
	older    *Model // served before that, nil for none
	served   *Model
	canary   *Canary
	follower *Follower
	// checked records hold: none of a canary went to a node outside of its share.
	checked int
}

var errBroker = errors.New("the broker is away")

func newTrials(t *testing.T, seed uint64) *trials {
	t.Helper()
	w := &trials{t: t, rng: rand.New(rand.NewPCG(seed, 9)), store: &memstore.Store{}, to: &topic{},
		texts: map[string]string{}, rows: map[string]int64{}, saving: time.Duration(seed%2) * time.Hour}
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

// start is a follower of a process that knows nothing of the one before.
func (w *trials) start() {
	w.follower = follower(w.store, w.to, func() *Model {
		m := *w.served
		m.Canary, m.PassedOver = w.canary, w.newest
		return &m
	})
	w.follower.opts.SaveEvery = func() time.Duration { return w.saving }
}

// change commits a window.
func (w *trials) change(n int) {
	w.t.Helper()
	rows := map[string]string{}
	for range n {
		id := fmt.Sprintf("n%02d", w.rng.IntN(40))
		rows[id] = "xxxxxxxxx"[:w.rng.IntN(9)]
	}
	var batch [][2]string
	for i := range 40 { // ascending
		id := fmt.Sprintf("n%02d", i)
		text, ok := rows[id]
		if !ok {
			continue
		}
		batch = append(batch, [2]string{id, text})
		w.rows[id] = w.seq + 1
		if w.texts[id] = text; text == "" { // deleted
			delete(w.texts, id)
		}
	}
	w.seq++
	commit(w.t, w.store, w.seq, batch...)
}

// generation makes one of everything that is committed.
func (w *trials) generation() *Model {
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

// step lets the follower work, and looks at every record that it has sent.
func (w *trials) step() {
	w.t.Helper()
	if w.rng.IntN(6) == 0 {
		w.start()
	}
	_, err := w.follower.Step(w.t.Context())
	if err != nil && !errors.Is(err, errBroker) {
		w.t.Fatal(err)
	}
	for ; w.checked < len(w.to.records); w.checked++ {
		r := w.to.records[w.checked]
		canary := w.canary != nil && InShare(r.NodeID, w.canary.Share) && r.Generation == w.canary.Generation
		if r.Generation != w.served.Generation && !canary {
			w.t.Fatalf("%s got generation %d; %d is served, the canary is %+v", r.NodeID, r.Generation,
				w.served.Generation, w.canary)
		}
	}
}

// settle lets the follower come to rest, and compares the end of the topic with what it must be.
func (w *trials) settle(what string) {
	w.t.Helper()
	for rest := 0; rest < 2; {
		before := len(w.to.records)
		done, err := w.follower.Step(w.t.Context())
		if err != nil && !errors.Is(err, errBroker) {
			w.t.Fatal(err)
		}
		if rest++; done || err != nil || len(w.to.records) > before {
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
		if w.canary != nil && InShare(id, w.canary.Share) {
			want = w.canary.Generation
		}
		r, ok := last[id]
		if !ok || r.Generation != want || r.Vector[0] != float32(100*want+int64(len(text))) {
			w.t.Fatalf("%s: %s with %d letters has %+v, want generation %d", what, id, len(text), r, want)
		}
	}
}

// disturb lets people decide something, and nodes change while the follower works.
func (w *trials) disturb() (what string) {
	shares := []float64{0.1, 0.3, 0.8}
	switch w.rng.IntN(6) {
	case 0:
		w.canary = &Canary{w.generation(), shares[w.rng.IntN(3)]}
		what = "a trial"
	case 1:
		if w.canary != nil {
			w.canary = &Canary{w.canary.Model, shares[w.rng.IntN(3)]}
		}
		what = "another share"
	case 2:
		if w.canary != nil {
			w.older, w.served, w.canary = w.served, w.canary.Model, nil
		}
		what = "promote"
	case 3:
		w.canary = nil
		what = "rollback"
	case 4:
		w.older, w.served, w.canary = w.served, w.generation(), nil
		what = "a generation"
	case 5:
		if w.older != nil {
			w.older, w.served, w.canary = nil, w.older, nil
		}
		what = "withdrawn"
	}
	w.checked = len(w.to.records)
	for range w.rng.IntN(6) {
		w.change(1 + w.rng.IntN(8))
		w.step()
	}
	return what
}

// A node outside of the share never gets a generation on trial. Whatever is promoted, taken back or given to another
// share, and whatever is served then or is withdrawn, while nodes change, the broker fails and followers die, halfway
// through a generation among other places: in the end every node has the newest text in the generation that is for it.
func TestTrialsConverge(t *testing.T) {
	for seed := range uint64(60) {
		w := newTrials(t, seed)
		w.settle("the first generation")
		for range 12 {
			what := w.disturb()
			if w.rng.IntN(2) == 0 {
				w.settle(fmt.Sprintf("seed %d, %s", seed, what))
			}
		}
		w.settle(fmt.Sprintf("seed %d, the end", seed))
	}
}

// The manifest of a node's record never decreases along the topic: no reader sees a node go back in time, whatever
// generation is served, tried or withdrawn halfway, and whether followers die or brokers fail.
func TestNoNodeGoesBackInTime(t *testing.T) {
	for seed := range uint64(60) {
		w := newTrials(t, seed)
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

// A trial touches the nodes of its share and no others, and so does its end.
func TestATrialPublishesItsShareAlone(t *testing.T) {
	w := newTrials(t, 3)
	w.to.fail = nil
	w.settle("the first generation")
	w.change(10)
	w.settle("changes")
	for _, what := range []string{"trial", "rollback"} {
		before := len(w.to.records)
		if what == "trial" {
			w.canary = &Canary{w.generation(), 0.3}
		} else {
			w.canary = nil
		}
		w.settle(what)
		if len(w.to.records) == before {
			t.Errorf("%s: nothing was published", what)
		}
		for _, r := range w.to.records[before:] {
			if !InShare(r.NodeID, 0.3) {
				t.Errorf("%s: %s, which is not in the share, was published again", what, r.NodeID)
			}
		}
	}
}

func TestSharesAreNestedAndAsLargeAsTheySay(t *testing.T) {
	for _, share := range []float64{0, 0.01, 0.25, 0.9} {
		in := 0
		for i := range 20000 {
			id := fmt.Sprintf("id-%d", i)
			if InShare(id, share) {
				in++
				if !InShare(id, share+0.05) {
					t.Fatalf("%s is in %g and not in %g", id, share, share+0.05)
				}
			}
		}
		if got := float64(in) / 20000; got < share-0.02 || got > share+0.02 {
			t.Errorf("%g of the nodes are in a share of %g", got, share)
		}
	}
}
