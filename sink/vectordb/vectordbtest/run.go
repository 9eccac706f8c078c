package vectordbtest

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"giantstream/internal/race"
	"giantstream/sink/vectordb"
)

var seeds = flag.Int("sink-seeds", 0, "random runs of each suite of sinks; 0: 3, or 1 of short tests")

// Seeds is how many random runs a suite makes: one under the race detector, where a run takes ten times as long, in the
// same goroutines.
func Seeds() int {
	switch {
	case *seeds > 0:
		return *seeds
	case race.Enabled, testing.Short():
		return 1
	}
	return 3
}

// Target is an index under test, in a database of its own.
type Target struct {
	// Open returns an index as a new process has it.
	Open func() vectordb.Index
	// Rows is what readers see, nil before they see anything.
	Rows func() map[string]Seen
	// Tables counts the tables that exist; nil if that is not known.
	Tables func() int
	// Wire, if not nil, is between the processes and the database.
	Wire *Wire
	// Calm, if not nil, ends the faults that the target makes of its own.
	Calm func()
	// Exact: the index can tell without control records that a table is complete.
	Exact bool
	// Vectorless: a node without a vector has a row.
	Vectorless bool
	// Attributes: rows have the Attributes of nodes.
	Attributes bool
	// Kept is what Remaining calls the place where deleted rows stay until somebody tidies up, "" if there is none.
	Kept string
	// Delayed: a write that was given up can reach the database after later ones.
	Delayed bool
}

// Run tests the indexes that open returns.
func Run(t *testing.T, open func(*testing.T) Target) {
	t.Run("faults", func(t *testing.T) {
		for seed := range Seeds() {
			// A test of its own closes what it has opened: servers bound their connections.
			t.Run(strconv.Itoa(seed), func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(uint64(seed), 21))
				target := open(t)
				faults(t, rnd, target, !target.Exact || seed%2 == 0)
			})
		}
	})
	t.Run("refill", func(t *testing.T) { refill(t, open(t)) })
	t.Run("another topic", func(t *testing.T) { anotherTopic(t, open(t)) })
	t.Run("another owner", func(t *testing.T) { anotherOwner(t, open(t)) })
	t.Run("left", func(t *testing.T) { remaining(t, open(t)) })
	t.Run("dimension", func(t *testing.T) { dimension(t, open(t)) })
}

// process follows a topic.
type process struct {
	*vectordb.Follower
	index      *faulty
	at         []int64
	attributes bool
}

// start returns a process that has opened the index, however often it dies of it.
func start(t *testing.T, topic *Topic, target Target, rnd *rand.Rand, kill, fail float64) *process {
	t.Helper()
	for {
		target.Wire.open()
		p := &process{attributes: target.Attributes, index: &faulty{Index: target.Open(), rnd: rnd, kill: kill,
			fail: fail, delayed: target.Delayed}}
		p.Follower = vectordb.New(options(topic, p.index))
		err := p.Open(t.Context())
		if err == nil {
			for partition := range topic.Records {
				p.at = append(p.at, max(0, p.Next(partition)))
			}
			return p
		}
		if !errors.Is(err, ErrKilled) {
			t.Fatal(err)
		}
	}
}

func options(topic *Topic, index vectordb.Index) vectordb.Options {
	return vectordb.Options{Index: index, Topic: "embeddings", TopicID: "1", Partitions: len(topic.Records),
		Ends:  func(context.Context) ([]int64, error) { return topic.Ends(), nil },
		Batch: 7, Pause: time.Microsecond, Log: slog.New(slog.DiscardHandler)}
}

// step hands over a run of records of a partition.
func (p *process) step(ctx context.Context, topic *Topic, rnd *rand.Rand, partition, most int) error {
	all := topic.Records[partition]
	from := p.at[partition]
	if from > 0 && rnd.IntN(5) == 0 {
		from -= rnd.Int64N(from) // fetched again
	}
	to := min(p.at[partition]+int64(1+rnd.IntN(most)), int64(len(all)))
	if to <= p.at[partition] {
		return nil
	}
	some := all[from:to]
	if !p.attributes {
		some = slices.DeleteFunc(slices.Clone(some), func(r vectordb.Record) bool { return r.OfAttributes })
	}
	if err := p.Handle(ctx, partition, some, to); err != nil {
		return err
	}
	p.at[partition] = to
	return nil
}

// From this round on the topic keeps its generation, so that several processes write one table, which stays until the
// end: a late write has to do its harm to rows that are compared with the topic.
const steadyFrom = 110

// faults follows a random topic through kills, lost replies, late writes and processes that live on.
func faults(t *testing.T, rnd *rand.Rand, target Target, control bool) {
	t.Helper()
	topic := NewTopic(rnd, 1+rnd.IntN(3), control, nil)
	p := start(t, topic, target, rnd, 0.01, 0.1)
	var zombies []*process
	look := func() {
		t.Helper()
		if mixed := Mixed(target.Rows()); mixed != "" {
			t.Fatal(mixed)
		}
	}
	for round := range 160 {
		topic.steady = round >= steadyFrom
		topic.Grow()
		err := p.step(t.Context(), topic, rnd, rnd.IntN(len(topic.Records)), 30)
		if err == nil && rnd.IntN(2) == 0 {
			err = p.Settle(t.Context())
			look()
		}
		p.index.arrive(false)
		target.Wire.deliver(false)
		if len(zombies) > 0 && rnd.IntN(4) == 0 {
			z := zombies[rnd.IntN(len(zombies))]
			_ = z.step(t.Context(), topic, rnd, rnd.IntN(len(topic.Records)), 10)
			_ = z.Settle(t.Context())
			look()
		}
		switch {
		case errors.Is(err, ErrKilled), err == nil && rnd.IntN(25) == 0:
			if err == nil { // it does not know that it is replaced
				p.index.kill = 0
				zombies = append(zombies, p)
			}
			late := p.index.late
			p = start(t, topic, target, rnd, 0.01, 0.1)
			p.index.late = late
		case err != nil:
			t.Fatal(err)
		}
	}
	topic.Settle()
	p.index.kill, p.index.fail, p.index.delayed = 0, 0, false
	target.Wire.calm()
	if target.Calm != nil {
		target.Calm()
	}
	p.finish(t, topic, rnd, target)
	p.index.arrive(true)
	target.Wire.deliver(true)
	p.finish(t, topic, rnd, target)
	want, generations := topic.Compacted(target)
	if len(generations) > 1 {
		t.Fatalf("the topic is wrong: it ends with the generations %v", generations)
	}
	if diff := Differ(target.Rows(), want); diff != "" {
		t.Fatalf("control %v: readers do not see the topic:\n%s", control, diff)
	}
	if target.Tables != nil {
		if n := target.Tables(); n > 2 {
			t.Errorf("%d tables are left", n)
		}
	}
}

// finish reads all of the topic and lets all tables settle.
func (p *process) finish(t *testing.T, topic *Topic, rnd *rand.Rand, target Target) {
	t.Helper()
	for partition := range topic.Records {
		for p.at[partition] < int64(len(topic.Records[partition])) {
			if err := p.step(t.Context(), topic, rnd, partition, 100); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Tables are compared now and then only, so that it takes a moment. On a slow server a moment is a few rounds.
	want, _ := topic.Compacted(target)
	deadline := time.Now().Add(10 * time.Second)
	for round := 1; ; round++ {
		if err := p.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		few := target.Tables == nil || target.Tables() <= 2
		if few && Differ(target.Rows(), want) == "" || round >= 50 && time.Now().After(deadline) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// filled returns a topic that a target has followed completely.
func filled(t *testing.T, target Target) (*Topic, *rand.Rand) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	topic := NewTopic(rnd, 2, true, nil)
	for range 10 {
		topic.Grow()
	}
	topic.Settle()
	start(t, topic, target, rnd, 0, 0).finish(t, topic, rnd, target)
	want, _ := topic.Compacted(target)
	if diff := Differ(target.Rows(), want); diff != "" {
		t.Fatal(diff)
	}
	return topic, rnd
}

// refill: what was lost of the topic's past does not stay in the table, and readers see one table after the other.
func refill(t *testing.T, target Target) {
	topic, rnd := filled(t, target)
	before := target.Rows()
	if err := vectordb.New(options(topic, target.Open())).Refill(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	// A tombstone that compaction has removed before it was read.
	for partition, records := range topic.Records {
		for i, r := range records {
			if r.NodeID == records[0].NodeID {
				records[i].Record = records[0].Record
				records[i].Record.NodeID = "gone"
				records[i].Deleted = true
			}
		}
		topic.Records[partition] = records
	}
	p := start(t, topic, target, rnd, 0, 0)
	if err := p.step(t.Context(), topic, rnd, 0, 1); err != nil {
		t.Fatal(err)
	}
	if err := p.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := Differ(target.Rows(), before); diff != "" {
		t.Errorf("the served table has changed while another is filled:\n%s", diff)
	}
	p.finish(t, topic, rnd, target)
	want, _ := topic.Compacted(target)
	if diff := Differ(target.Rows(), want); diff != "" {
		t.Error(diff)
	}
}

// anotherTopic: the offsets of one topic say nothing about another.
func anotherTopic(t *testing.T, target Target) {
	topic, rnd := filled(t, target)
	for name, change := range map[string]func(*vectordb.Options){
		"name":       func(o *vectordb.Options) { o.Topic = "others" },
		"partitions": func(o *vectordb.Options) { o.Partitions++ },
	} {
		o := options(topic, target.Open())
		change(&o)
		if err := vectordb.New(o).Open(t.Context()); !errors.Is(err, vectordb.ErrTopic) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	// One that was created again is read from its beginning.
	next := NewTopic(rnd, 2, true, nil)
	for range 5 {
		next.Grow()
	}
	next.Settle()
	o := options(next, target.Open())
	o.TopicID = "2"
	f := vectordb.New(o)
	if err := f.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := &process{Follower: f, attributes: target.Attributes, index: &faulty{Index: o.Index, rnd: rnd},
		at: make([]int64, 2)}
	if f.Next(0) > 0 {
		t.Fatalf("a new topic is read from offset %d", f.Next(0))
	}
	p.finish(t, next, rnd, target)
	want, _ := next.Compacted(target)
	if diff := Differ(target.Rows(), want); diff != "" {
		t.Error(diff)
	}
}

// anotherOwner: tables are of the pipeline that the topic belongs to.
func anotherOwner(t *testing.T, target Target) {
	topic, _ := filled(t, target)
	owned := func(owner string, before ...string) *vectordb.Follower {
		o := options(topic, target.Open())
		o.Owner, o.OwnersBefore = owner, before
		return vectordb.New(o)
	}
	open := func(owner string, before ...string) error { return owned(owner, before...).Open(t.Context()) }
	if err := open("a"); err != nil { // the tables are of a release that knows no owners
		t.Fatal(err)
	}
	served := target.Rows()
	for name, err := range map[string]error{
		"another owner":                     open("b"),
		"filled again without its name":     owned("b").Refill(t.Context(), ""),
		"filled again with another's name":  owned("b").Refill(t.Context(), "c"),
		"another owner that continues some": open("b", "c"),
	} {
		if !errors.Is(err, vectordb.ErrOwner) || !strings.Contains(err.Error(), "sink refill DATABASE --from a") {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := options(topic, target.Open())
	o.TopicID = "2"
	if err := vectordb.New(o).Open(t.Context()); !errors.Is(err, vectordb.ErrOwner) {
		t.Errorf("a new topic without an owner: %v", err)
	}
	if diff := Differ(target.Rows(), served); diff != "" {
		t.Errorf("readers see the change: %s", diff)
	}
	for _, err := range []error{open("a"), open("b", "a"), open("b"), owned("c").Refill(t.Context(), "b"), open("c")} {
		if err != nil {
			t.Error(err)
		}
	}
	if err := open("b"); !errors.Is(err, vectordb.ErrOwner) {
		t.Errorf("the owner of before: %v", err)
	}
}

// dimension: a vector that does not fit is an error that says so, and changes nothing.
func dimension(t *testing.T, target Target) {
	topic, rnd := filled(t, target)
	before := target.Rows()
	bad := topic.Records[0][0]
	for _, r := range topic.Records[0] {
		if len(r.Vector) > 0 && r.Generation == topic.target {
			bad = r
		}
	}
	bad.Vector = append(bad.Vector[:len(bad.Vector):len(bad.Vector)], 1)
	topic.append(0, bad)
	p := start(t, topic, target, rnd, 0, 0)
	if err := p.step(t.Context(), topic, rnd, 0, 100); !errors.Is(err, vectordb.ErrDimension) {
		t.Errorf("got %v, want %v", err, vectordb.ErrDimension)
	}
	if diff := Differ(target.Rows(), before); diff != "" {
		t.Error(diff)
	}
	o := options(topic, p.index)
	o.Dim = len(bad.Vector) - 1
	p.Follower = vectordb.New(o)
	if err := p.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.step(t.Context(), topic, rnd, 0, 100); err != nil {
		t.Errorf("vectors of other dimensions are to be left out: %v", err)
	}
}
