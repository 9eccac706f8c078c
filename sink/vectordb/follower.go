package vectordb

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"giantstream/internal/retry"
)

// Options of a Follower.
type Options struct {
	Index Index
	// Topic, its id and its number of partitions are what is followed. A source that is no topic has a name that no
	// topic can have.
	Topic, TopicID string
	Partitions     int
	// Owner is the id of the pipeline that the topic belongs to, "" for none. It continues those in OwnersBefore.
	Owner        string
	OwnersBefore []string
	// Ends returns where each partition ends now.
	Ends func(context.Context) ([]int64, error)
	// Announced: control records say of each generation that it is complete, also of the first.
	Announced bool
	// Batch is how many records are written at a time.
	Batch int
	// Dim, unless 0, leaves out vectors of other dimensions.
	Dim int
	// Applied, if not nil, is called after every batch.
	Applied func(upserts, deletes, attributes int)
	// Watch, if not nil, receives the failures of the index.
	Watch retry.Watcher
	// Every is how often a Follower looks whether a table is complete.
	Every time.Duration
	// Pause is the first pause between attempts; 0 means the one of retry.Loop.
	Pause time.Duration
	Log   *slog.Logger
}

// Follower brings the records of a topic into an Index.
type Follower struct {
	opts Options

	// loop repeats what fails, unless the error is final.
	loop retry.Loop

	// mu is held for writing while tables are made, served and dropped, and for reading while rows change.
	mu      sync.RWMutex
	catalog Catalog

	// progressMu guards the map alone: each Progress is replaced, never changed.
	progressMu sync.Mutex
	progress   map[int]Progress

	state     atomic.Pointer[State]
	compared  comparison
	remembers reminder
}

// New returns a follower; Open comes next.
func New(o Options) *Follower {
	o.Batch, o.Every = cmp.Or(o.Batch, 1000), cmp.Or(o.Every, time.Second)
	return &Follower{opts: o, progress: map[int]Progress{},
		loop: retry.Loop{Service: "the index", Min: o.Pause, Watch: o.Watch, Log: o.Log}}
}

// Open takes the index over and finds where to go on.
func (f *Follower) Open(ctx context.Context) error {
	return f.open(ctx, false, "")
}

// Refill takes the index over and makes the next follower read the topic again, from its beginning, into a new table.
// The table that is served stays until then, and no record changes it. Tables of another pipeline than the topic's are
// refused, unless from is its id.
func (f *Follower) Refill(ctx context.Context, from string) error {
	return f.open(ctx, true, from)
}

func (f *Follower) open(ctx context.Context, refill bool, from string) error {
	var saved Saved
	err := f.loop.Do(ctx, "open the sink", func(ctx context.Context) (err error) {
		saved, err = f.opts.Index.Open(ctx)
		return err
	})
	if err != nil {
		return err
	}
	c := saved.Catalog
	if err := f.claim(&c, from); err != nil {
		return err
	}
	switch {
	case c.Topic == "":
		c.Epoch = 1
		refill = false
	case c.Topic != f.opts.Topic && !refill:
		return fmt.Errorf("%w: this sink follows the topic %q, and is to follow %q; give the sink another name "+
			"(sinks.name), or let it begin again with 'giantstream sink refill'", ErrTopic, c.Topic, f.opts.Topic)
	case c.TopicID != f.opts.TopicID && !refill:
		f.opts.Log.Warn("the topic was created again, or the store has another pipeline; it is read from its "+
			"beginning into a new table",
			"topic", f.opts.Topic)
		refill = true
	case c.Partitions != f.opts.Partitions && !refill:
		return fmt.Errorf("%w: topic %q has %d partitions and had %d. Keys have moved between partitions, so that the "+
			"order of their records is lost: create the topic again, and giantstream publishes everything anew",
			ErrTopic, f.opts.Topic, f.opts.Partitions, c.Partitions)
	}
	c.Topic, c.TopicID, c.Partitions = f.opts.Topic, f.opts.TopicID, f.opts.Partitions
	f.catalog, f.progress = c, saved.Progress
	if refill {
		f.catalog.Epoch++
		if err := f.retire(ctx); err != nil {
			return err
		}
	}
	maps.DeleteFunc(f.progress, func(_ int, p Progress) bool { return p.Epoch != f.catalog.Epoch })
	if err := f.save(ctx, f.catalog); err != nil {
		return err
	}
	// A process that has died may have left a table that is in the catalog alone.
	for _, t := range f.catalog.Tables {
		if t.Retired {
			continue
		}
		err := f.loop.Do(ctx, "create a table", func(ctx context.Context) error { return f.opts.Index.Create(ctx, t) })
		if err != nil {
			return err
		}
	}
	return nil
}

// claim makes the topic's owner that of the catalog, if it is the same pipeline, or the catalog has none yet, or it has
// the one with the id from.
func (f *Follower) claim(c *Catalog, from string) error {
	o := &f.opts
	switch {
	case o.Owner == c.Owner:
		return nil
	case o.Owner == "" && c.TopicID == o.TopicID:
		return nil // by a release that knows no owners
	case o.Owner == "":
		return fmt.Errorf("%w: %w: the tables of this sink are of the pipeline with id %s, and topic %q was created "+
			"again: start the pipeline, which claims it", ErrOwner, ErrUnclaimed, c.Owner, o.Topic)
	case c.Owner != "" && c.Owner != from && !slices.Contains(o.OwnersBefore, c.Owner):
		return fmt.Errorf("%w: the sink's tables are of pipeline %s, and topic %q is of pipeline %s. Give the sink "+
			"another name (sinks.name), or let it begin again with 'giantstream sink refill DATABASE --from %s'",
			ErrOwner, c.Owner, o.Topic, o.Owner, c.Owner)
	}
	o.Log.Info("the sink's tables belong to the topic's pipeline from now on", "topic", o.Topic, "pipeline", o.Owner,
		"before", c.Owner)
	c.Owner = o.Owner
	return nil
}

// retire drops all tables but the one that is served, which no record changes any more.
func (f *Follower) retire(ctx context.Context) error {
	all := f.catalog.clone().Tables
	for i := range f.catalog.Tables {
		f.catalog.Tables[i].Retired = true
	}
	for _, t := range all {
		if t.Serial != f.catalog.Served {
			if err := f.drop(ctx, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// Next returns the offset that a partition continues at, -1 for its oldest record.
func (f *Follower) Next(partition int) int64 {
	p, ok := f.progressOf(partition)
	if !ok {
		return -1
	}
	return p.Next
}

func (f *Follower) progressOf(partition int) (Progress, bool) {
	f.progressMu.Lock()
	defer f.progressMu.Unlock()
	p, ok := f.progress[partition]
	return p, ok
}

// Handle writes the records of one partition, in the order of their offsets, and then continues at next. Those that
// were written before are left out. It tries again until it succeeds, ctx ends, or an error is final. It may be called
// for several partitions at once.
func (f *Follower) Handle(ctx context.Context, partition int, records []Record, next int64) error {
	at := f.Next(partition)
	for i, r := range records {
		if r.Offset >= at {
			records = records[i:]
			break
		}
		if i == len(records)-1 {
			records = nil
		}
	}
	for len(records) > f.opts.Batch {
		chunk := records[:f.opts.Batch]
		records = records[f.opts.Batch:]
		if err := f.write(ctx, partition, chunk, records[0].Offset, nil); err != nil {
			return err
		}
	}
	if next <= at {
		return nil
	}
	return f.write(ctx, partition, records, next, nil)
}

// mark is a cursor to store.
type mark struct {
	shard  int
	cursor string
}

// Mark stores where the source of a partition's records continues, for a shard. It takes an offset, so that what is
// stored is never that of an older one.
func (f *Follower) Mark(ctx context.Context, partition, shard int, cursor string) error {
	return f.write(ctx, partition, nil, max(f.Next(partition), 0)+1, &mark{shard, cursor})
}

// Marked returns what Mark stored last, "" for nothing.
func (f *Follower) Marked(partition, shard int) string {
	p, _ := f.progressOf(partition)
	return p.Cursors[shard]
}

// write writes one batch, and with it a cursor, unless that is nil.
func (f *Follower) write(ctx context.Context, partition int, records []Record, next int64, m *mark) error {
	for {
		if err := f.makeTables(ctx, records); err != nil {
			return err
		}
		done, err := f.apply(ctx, partition, records, next, m)
		if done || err != nil {
			return err
		}
	}
}

// apply is false if a table of the records is not there.
func (f *Follower) apply(ctx context.Context, partition int, records []Record, next int64, m *mark) (bool, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.missing(records) != nil {
		return false, nil
	}
	b, err := f.batch(partition, records, next)
	if err != nil {
		return false, err
	}
	if m != nil {
		if b.Progress.Cursors == nil {
			b.Progress.Cursors = map[int]string{}
		}
		b.Progress.Cursors[m.shard] = m.cursor
	}
	err = f.loop.Do(ctx, "write to the index", func(ctx context.Context) error { return f.opts.Index.Apply(ctx, b) })
	if err != nil {
		return false, err
	}
	f.progressMu.Lock()
	f.progress[partition] = b.Progress
	f.progressMu.Unlock()
	if f.opts.Applied != nil {
		upserts, deletes, attributes := 0, 0, 0
		for _, c := range b.Changes {
			upserts += len(c.Upserts)
			deletes += len(c.Deletes)
			attributes += len(c.Attributes)
		}
		f.opts.Applied(upserts, deletes, attributes)
	}
	return true, nil
}

// batch says what the records change in each table.
func (f *Follower) batch(partition int, records []Record, next int64) (Batch, error) {
	before, ok := f.progressOf(partition)
	b := Batch{Partition: partition, From: before.Next, Progress: Progress{Epoch: f.catalog.Epoch, Next: next,
		Completed: maps.Clone(before.Completed), Last: map[int64]int64{}, Cursors: maps.Clone(before.Cursors)}}
	if !ok {
		b.From = -1
	}
	for serial, offset := range before.Last {
		if f.catalog.bySerial(serial) != nil {
			b.Progress.Last[serial] = offset
		}
	}
	newest, err := f.newestOf(partition, records, &b.Progress)
	if err != nil {
		return b, err
	}
	for _, t := range f.catalog.Tables {
		if c := changeOf(t, records, newest); len(c.Upserts)+len(c.Deletes)+len(c.Attributes) > 0 {
			b.Changes = append(b.Changes, c)
		}
	}
	return b, nil
}

// place is a row of a table.
type place struct {
	serial int64
	id     string
}

// newestOf returns the newest record of each row that the records change, attributes apart, and notes in the progress
// what else they say.
func (f *Follower) newestOf(partition int, records []Record, progress *Progress) (map[place]Record, error) {
	newest := map[place]Record{}
	for _, r := range records {
		switch {
		case r.OfAttributes:
		case r.Completion != nil:
			if progress.Completed == nil {
				progress.Completed = map[int]Completed{}
			}
			c := r.Completion
			progress.Completed[c.Shard] = Completed{c.Generation, c.Shards, r.Offset}
		case r.Deleted:
			for _, t := range f.catalog.Tables {
				if !t.Retired {
					newest[place{t.Serial, r.NodeID}] = r
				}
			}
		case f.leftOut(r):
		default:
			t := f.catalog.find(r.Generation)
			if len(r.Vector) > 0 && len(r.Vector) != t.Dim {
				return nil, fmt.Errorf("%w: the vector of %q, partition %d, offset %d, has %d; others of generation "+
					"%d have %d. Once all has a new sink.embedding_dim, set sinks.dimensions to it, and run "+
					"'giantstream sink refill'", ErrDimension, r.NodeID, partition,
					r.Offset, len(r.Vector), r.Generation, t.Dim)
			}
			newest[place{t.Serial, r.NodeID}] = r
			progress.Last[t.Serial] = r.Offset
		}
	}
	return newest, nil
}

// changeOf says what the records change in a table, in the order of their offsets.
func changeOf(t Table, records []Record, newest map[place]Record) Change {
	c := Change{Table: t}
	for at, r := range newest {
		switch {
		case at.serial != t.Serial:
		case r.Deleted:
			c.Deletes = append(c.Deletes, r)
		default:
			c.Upserts = append(c.Upserts, r)
		}
	}
	c.addAttributes(records, func(id string) (Record, bool) {
		r, ok := newest[place{t.Serial, id}]
		return r, ok
	})
	order := func(a, b Record) int { return cmp.Compare(a.Offset, b.Offset) }
	slices.SortFunc(c.Upserts, order)
	slices.SortFunc(c.Deletes, order)
	return c
}

// addAttributes adds the newest attributes of each node. other returns the newest of its other records: attributes that
// come before an embedding come again behind it.
func (c *Change) addAttributes(records []Record, other func(id string) (Record, bool)) {
	if c.Table.Retired {
		return
	}
	last := map[string]int{}
	for i, r := range records {
		if r.OfAttributes {
			last[r.NodeID] = i
		}
	}
	for i, r := range records {
		if !r.OfAttributes || last[r.NodeID] != i {
			continue
		}
		if before, ok := other(r.NodeID); !ok || !before.Deleted && before.Offset < r.Offset {
			c.Attributes = append(c.Attributes, r)
		}
	}
}

func (f *Follower) leftOut(r Record) bool {
	return f.opts.Dim > 0 && len(r.Vector) > 0 && len(r.Vector) != f.opts.Dim
}

// Run serves tables once they are complete, and drops the others, until ctx ends or an error is final.
func (f *Follower) Run(ctx context.Context) error {
	for {
		if err := f.Settle(ctx); err != nil {
			return err
		}
		if err := retry.Sleep(ctx, f.opts.Every); err != nil {
			return err
		}
	}
}
