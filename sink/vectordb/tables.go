package vectordb

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// missing returns a record whose table is not there or does not know its dimension yet, nil if there is none.
func (f *Follower) missing(records []Record) *Record {
	for i := range records {
		r := &records[i]
		if r.Completion != nil || r.OfAttributes || r.Deleted || f.leftOut(*r) {
			continue
		}
		if t := f.catalog.find(r.Generation); t == nil || t.Dim == 0 && len(r.Vector) > 0 {
			return r
		}
	}
	return nil
}

// makeTables makes the tables that records need.
func (f *Follower) makeTables(ctx context.Context, records []Record) error {
	f.mu.RLock()
	r := f.missing(records)
	f.mu.RUnlock()
	if r == nil {
		return nil
	}
	var ends []int64
	err := f.loop.Do(ctx, "ask where the topic ends", func(ctx context.Context) (err error) {
		ends, err = f.opts.Ends(ctx)
		return err
	})
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for r := f.missing(records); r != nil; r = f.missing(records) {
		c := f.catalog.clone()
		t := c.find(r.Generation)
		if t == nil {
			c.Serial++
			c.Tables = append(c.Tables, Table{Serial: c.Serial, Generation: r.Generation,
				Space: cmp.Or(r.Space, r.Generation), Until: ends})
			t = &c.Tables[len(c.Tables)-1]
			f.opts.Log.Info("a generation begins; a new table is filled", "generation", t.Generation,
				"table", t.Serial)
		}
		t.Dim = len(r.Vector)
		made := *t
		// The catalog comes first: a table that it does not know would never be dropped.
		if err := f.save(ctx, c); err != nil {
			return err
		}
		err := f.loop.Do(ctx, "create a table", func(ctx context.Context) error {
			return f.opts.Index.Create(ctx, made)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *Follower) save(ctx context.Context, c Catalog) error {
	err := f.loop.Do(ctx, "save the catalog", func(ctx context.Context) error { return f.opts.Index.Save(ctx, c) })
	if err == nil {
		f.set(c)
	}
	return err
}

// drop removes a table: first the rows, then the catalog's entry, which a failure in between leaves to try again.
func (f *Follower) drop(ctx context.Context, t Table) error {
	err := f.loop.Do(ctx, "drop a table", func(ctx context.Context) error { return f.opts.Index.Drop(ctx, t) })
	if err != nil {
		return err
	}
	c := f.catalog.clone()
	c.Tables = slices.DeleteFunc(c.Tables, func(u Table) bool { return u.Serial == t.Serial })
	return f.save(ctx, c)
}

// Settle stores what was held back for long enough, serves the table that is complete, if it is not served yet, and
// drops those that it replaces.
func (f *Follower) Settle(ctx context.Context) error {
	if err := f.flush(ctx, false); err != nil {
		return err
	}
	f.mu.RLock()
	t, err := f.due(ctx, false)
	f.mu.RUnlock()
	if err != nil {
		return err
	}
	if t != nil {
		began := time.Now()
		err := f.loop.Do(ctx, "build the search index", func(ctx context.Context) error {
			return f.opts.Index.Finish(ctx, *t)
		})
		if err != nil {
			return err
		}
		if err := f.serve(ctx, *t, time.Since(began)); err != nil {
			return err
		}
	}
	return f.dropReplaced(ctx)
}

// Flush stores all that was handed over, where the Index has held it back.
func (f *Follower) Flush(ctx context.Context) error { return f.flush(ctx, true) }

func (f *Follower) flush(ctx context.Context, all bool) error {
	x, ok := f.opts.Index.(Flusher)
	if !ok {
		return nil
	}
	return f.loop.Do(ctx, "commit", func(ctx context.Context) error { return x.Flush(ctx, all) })
}

// serve leads readers to a table, unless the topic has gone back from it while the table was finished.
func (f *Follower) serve(ctx context.Context, t Table, finished time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if again, err := f.due(ctx, true); err != nil || again == nil || again.Serial != t.Serial {
		return err
	}
	c := f.catalog.clone()
	c.Served = t.Serial
	err := f.loop.Do(ctx, "serve a table", func(ctx context.Context) error { return f.opts.Index.Serve(ctx, t, c) })
	if err != nil {
		return err
	}
	f.set(c)
	f.opts.Log.Info("a generation is complete; readers see it now", "generation", t.Generation, "space", t.Space,
		"dimensions", t.Dim, "table", t.Serial, "search_index", finished.Round(time.Millisecond))
	return nil
}

// due returns the table that is complete and not served, nil if there is none. finished says that it was before, so
// that what the topic has got since does not count.
func (f *Follower) due(ctx context.Context, finished bool) (*Table, error) {
	controlled := f.controlled()
	for _, t := range f.catalog.Tables {
		if t.Serial == f.catalog.Served || t.Retired || t.Dim == 0 || !f.reached(t.Until) {
			continue
		}
		if controlled {
			if f.announced(t) == nil {
				continue
			}
			return &t, nil
		}
		if caught, err := f.caughtUp(ctx, t, finished); caught || err != nil {
			return &t, err
		}
	}
	return nil, nil
}

// reached reports whether every partition has been read up to an offset.
func (f *Follower) reached(ends []int64) bool {
	f.progressMu.Lock()
	defer f.progressMu.Unlock()
	for p, end := range ends {
		// The offset 0 of a partition is reached by a partition without any record.
		if f.progress[p].Next < end {
			return false
		}
	}
	return true
}

// controlled reports whether the topic has control records.
func (f *Follower) controlled() bool {
	if f.opts.Announced {
		return true
	}
	f.progressMu.Lock()
	defer f.progressMu.Unlock()
	for _, p := range f.progress {
		if len(p.Completed) > 0 {
			return true
		}
	}
	return false
}

// announced returns, for each partition, the offset of the first of the shards' newest control records, if all of them
// name the table's generation, and nil if not.
func (f *Follower) announced(t Table) []int64 {
	f.progressMu.Lock()
	defer f.progressMu.Unlock()
	first := make([]int64, f.catalog.Partitions)
	for p := range first {
		all := f.progress[p].Completed
		var newest Completed
		for _, c := range all {
			if c.Offset >= newest.Offset {
				newest = c
			}
		}
		if newest.Shards == 0 {
			return nil
		}
		first[p] = newest.Offset
		// Records of another number of shards are of an older pipeline.
		for s := range newest.Shards {
			c := all[s]
			if c.Generation != t.Generation || c.Shards != newest.Shards {
				return nil
			}
			first[p] = min(first[p], c.Offset)
		}
	}
	return first
}

// comparison bounds what it costs to compare tables.
type comparison struct {
	// next is when two tables may be compared again, by their serials.
	next map[[2]int64]time.Time
	// ends are those of the topic a moment ago.
	ends []int64
}

// caughtUp says, for a topic without control records, whether a table has replaced all others.
func (f *Follower) caughtUp(ctx context.Context, t Table, finished bool) (bool, error) {
	if !finished {
		caught := f.compared.ends != nil && f.reached(f.compared.ends)
		if f.compared.ends == nil || caught {
			ends, err := f.opts.Ends(ctx)
			if err != nil {
				return false, nil //nolint:nilerr // it is asked again soon
			}
			f.compared.ends = ends
		}
		if !caught {
			return false, nil
		}
	}
	for _, u := range f.catalog.Tables {
		if u.Serial == t.Serial || u.Retired {
			continue
		}
		if newer, err := f.newer(ctx, u, t); !newer || err != nil {
			return false, err
		}
	}
	return true, nil
}

// newer reports whether all nodes of a table have newer records in another. It is false if the index cannot tell, and
// for a while after it was: comparisons take a twentieth of the time at most.
func (f *Follower) newer(ctx context.Context, old, by Table) (newer bool, err error) {
	began := time.Now()
	tables := [2]int64{old.Serial, by.Serial}
	if began.Before(f.compared.next[tables]) {
		return false, nil
	}
	err = f.loop.Do(ctx, "compare tables", func(ctx context.Context) (err error) {
		newer, err = f.opts.Index.Newer(ctx, old, by)
		return err
	})
	if errors.Is(err, ErrNoControl) {
		f.remembers.warn(f, by)
		return false, nil
	}
	if len(f.compared.next) > 1000 {
		f.compared.next = nil // most are of tables that are gone
	}
	if f.compared.next == nil {
		f.compared.next = map[[2]int64]time.Time{}
	}
	if !newer {
		f.compared.next[tables] = time.Now().Add(20 * time.Since(began))
	}
	return newer, err
}

// reminder repeats a warning once in a while.
type reminder struct{ next time.Time }

func (r *reminder) warn(f *Follower, t Table) {
	if time.Now().After(r.next) {
		r.next = time.Now().Add(10 * time.Minute)
		f.opts.Log.Warn("this index cannot tell when a generation is complete unless the topic says so: set "+
			"sink.control_records: true where embeddings are published; until then readers see the generation before",
			"generation", t.Generation)
	}
}

// dropReplaced drops the tables that no record will go to any more.
func (f *Follower) dropReplaced(ctx context.Context) error {
	f.mu.RLock()
	tables := f.catalog.clone().Tables
	served := f.catalog.bySerial(f.catalog.Served)
	f.mu.RUnlock()
	if served == nil || served.Retired {
		return nil
	}
	for _, t := range tables {
		if t.Serial == served.Serial {
			continue
		}
		f.mu.Lock()
		replaced, err := f.replaced(ctx, t, *served)
		if replaced {
			err = f.drop(ctx, t)
		}
		f.mu.Unlock()
		if err != nil {
			return err
		}
		if replaced {
			f.opts.Log.Info("an older table is dropped", "generation", t.Generation, "table", t.Serial)
		}
	}
	return nil
}

// replaced reports whether a table is done with. One that has records behind the control records of the served one may
// be the next to be served: the topic goes back to its generation, say. Without control records, it is one whose nodes
// all have newer records in the served one.
func (f *Follower) replaced(ctx context.Context, t, served Table) (bool, error) {
	if t.Retired {
		return true, nil
	}
	if !f.reached(t.Until) {
		return false, nil
	}
	if !f.controlled() {
		if !f.used(t) {
			return false, nil
		}
		return f.newer(ctx, t, served)
	}
	first := f.announced(served)
	if first == nil {
		return false, nil
	}
	f.progressMu.Lock()
	defer f.progressMu.Unlock()
	for p, progress := range f.progress {
		if last, ok := progress.Last[t.Serial]; ok && last > first[p] {
			return false, nil
		}
	}
	return true, nil
}

// used reports whether a table has had a record.
func (f *Follower) used(t Table) bool {
	f.progressMu.Lock()
	defer f.progressMu.Unlock()
	for _, progress := range f.progress {
		if _, ok := progress.Last[t.Serial]; ok {
			return true
		}
	}
	return false
}

// State is what a follower does at present.
type State struct {
	// Served is the generation that readers see, Filling the newest of those that are filled; 0 for none.
	Served, Filling int64
	Tables          int
}

// State returns what the follower does at present. It waits for nothing.
func (f *Follower) State() State {
	if s := f.state.Load(); s != nil {
		return *s
	}
	return State{}
}

// set replaces the catalog.
func (f *Follower) set(c Catalog) {
	f.catalog = c
	s := State{Tables: len(c.Tables)}
	for _, t := range c.Tables {
		if t.Serial == c.Served {
			s.Served = t.Generation
		} else if !t.Retired {
			s.Filling = max(s.Filling, t.Generation)
		}
	}
	f.state.Store(&s)
}
