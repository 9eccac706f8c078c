package groupcommit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"giantstream/internal/retry"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
)

// batch is a group manifest that is being made.
type batch struct {
	session *session
	number  int64
	tickets map[int]*Ticket
	changed chan struct{} // a ticket was submitted or abandoned
	closed  bool          // nobody can join any more
	sealed  bool          // another worker has sealed the session
	without map[int]bool  // released shards, whose lines in the session end here
	// finished is closed when the outcome is known.
	finished chan struct{}
}

func (b *batch) notify() {
	if b == nil {
		return
	}
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// errEmpty: the session has no shard any more. Nobody is harmed by a worker that seals it.
var errEmpty = errors.New("the session has no shard left")

// Ticket is the part of a shard in a group manifest.
type Ticket struct {
	member    *Member
	batch     *batch
	head      *commitlog.Manifest
	manifest  *commitlog.Manifest // nil before Commit
	rows      []rows.Row
	done      chan error
	submitted bool
}

// Head is the manifest that the ticket's manifest follows. It may repeat the one that Begin was given.
func (t *Ticket) Head() *commitlog.Manifest { return t.head }

// Writer names the session in manifests.
func (t *Ticket) Writer() string { return t.member.c.writer(t.batch.session) }

func (c *Committer) writer(s *session) string { return c.opts.Writer + "-" + s.id }

// RowKey names a row object for the ticket's manifest alone.
func (t *Ticket) RowKey() string {
	t.member.c.mu.Lock()
	defer t.member.c.mu.Unlock()
	return t.batch.rowKey()
}

func (b *batch) rowKey() string {
	b.session.objects++
	return commitlog.GroupRowKey(b.session.id, b.number, b.session.objects-1)
}

// Abandon gives the ticket back. The group manifest repeats the shard's newest manifest.
func (t *Ticket) Abandon() {
	t.member.c.mu.Lock()
	defer t.member.c.mu.Unlock()
	if !t.submitted && t.batch.tickets[t.member.shard] == t {
		delete(t.batch.tickets, t.member.shard)
		t.batch.notify()
	}
}

// Commit commits the manifest, with these rows in an object that it shares with other shards. It sets the manifest's
// number and place in the chain, and adds the shared objects to the manifest's own, which precede them. Rows ascend by
// node id. After an error other than ErrSealed it is open whether the manifest exists.
func (t *Ticket) Commit(ctx context.Context, m *commitlog.Manifest, shared []rows.Row) error {
	c := t.member.c
	c.mu.Lock()
	if c.members[t.member.shard] != t.member {
		c.mu.Unlock()
		t.Abandon()
		return ErrSuperseded
	}
	t.manifest, t.rows, t.submitted = m, shared, true
	t.batch.notify()
	c.mu.Unlock()
	select {
	case err := <-t.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the manifest may or may not have been written: %w", ctx.Err())
	}
}

// run waits for the tickets of a batch, and commits them.
func (c *Committer) run(b *batch) {
	tickets := c.await(b)
	err := c.write(b, tickets)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && c.session == b.session {
		c.session = nil // what became of its last group manifest is for the next worker to find out
	}
	for _, t := range tickets {
		if c.members[t.member.shard] == t.member {
			delete(c.open, t.member.shard)
		}
		t.done <- err
	}
	c.batch = nil
	if c.session != nil && len(c.session.released) > 0 {
		c.begin()
	}
	close(b.finished)
}

// await returns the tickets of the batch once it waits for no more.
func (c *Committer) await(b *batch) []*Ticket {
	timer := time.NewTimer(c.opts.Linger)
	defer timer.Stop()
	for over := false; ; {
		c.mu.Lock()
		if c.ready(b, over) {
			b.closed = true
			b.leaveOut()
			c.mu.Unlock()
			return slices.SortedFunc(maps.Values(b.tickets), func(a, b *Ticket) int {
				return cmp.Compare(a.member.shard, b.member.shard)
			})
		}
		c.mu.Unlock()
		select {
		case <-b.changed:
		case <-timer.C:
			over = true
		}
	}
}

// leaveOut takes the released shards out of the batch, but for those that have yet to commit a window in it. The
// committer's mu is held.
func (b *batch) leaveOut() {
	b.without = map[int]bool{}
	for shard := range b.session.released {
		if b.tickets[shard] == nil {
			b.without[shard] = true
			delete(b.session.released, shard)
		}
	}
}

// ready reports whether a batch waits for nobody. It waits for those who have joined and, until its time is over, for
// windows that end with theirs. c.mu is held.
func (c *Committer) ready(b *batch, over bool) bool {
	for _, t := range b.tickets {
		if !t.submitted {
			return false
		}
	}
	if over || c.opts.Clock().Before(c.end()) {
		return true
	}
	for shard := range c.open {
		if b.tickets[shard] == nil {
			return false
		}
	}
	return true
}

// write commits a batch. As long as it is not finished, nobody else uses the session.
func (c *Committer) write(b *batch, tickets []*Ticket) error {
	if b.sealed {
		return ErrSealed
	}
	if len(tickets) == 0 && len(b.without) == 0 {
		return nil
	}
	if err := c.writeRows(b, tickets); err != nil {
		return err
	}
	s, now := b.session, c.opts.Clock().UTC()
	next := map[int]*commitlog.Manifest{}
	for _, t := range tickets {
		m := t.manifest
		m.Format, m.Seq, m.Writer, m.Created = commitlog.GroupManifestFormat, t.head.Seq+1, c.writer(s), now
		m.Follow(t.head)
		next[m.Shard] = m
	}
	var repeated []*commitlog.Manifest
	for _, shard := range slices.Sorted(maps.Keys(s.lines)) {
		if next[shard] == nil && !b.without[shard] {
			m := s.lines[shard].Repeat(c.writer(s), now)
			next[shard] = m
			repeated = append(repeated, m)
		}
	}
	parts := slices.SortedFunc(maps.Values(next), func(a, b *commitlog.Manifest) int {
		return cmp.Compare(a.Shard, b.Shard)
	})
	if len(parts) == 0 {
		return errEmpty
	}
	g := &commitlog.GroupManifest{Session: s.id, Number: b.number, Writer: c.writer(s), Created: now}
	err := c.creator.CreateGroup(c.ctx, g, parts)
	if errors.Is(err, commitlog.ErrTaken) {
		return fmt.Errorf("%w: %w", ErrSealed, err)
	}
	if err != nil {
		return err
	}
	s.number, s.lines = b.number, next
	clear(s.delegated)
	if c.opts.OnRepeat != nil {
		for _, m := range repeated {
			c.opts.OnRepeat(m)
		}
	}
	return nil
}

// sharedObjectRows bounds a shared row object, unless one shard alone has more.
const sharedObjectRows = 50_000

// writeRows writes the shared rows of the tickets, shard by shard, and enters the objects in their manifests. Each
// shard has row groups of its own, so that a reader of one shard need not decode the others.
func (c *Committer) writeRows(b *batch, tickets []*Ticket) error {
	for len(tickets) > 0 {
		var groups []int64
		total, n := int64(0), 0
		for ; n < len(tickets) && (total == 0 || total+int64(len(tickets[n].rows)) <= sharedObjectRows); n++ {
			if rows := int64(len(tickets[n].rows)); rows > 0 {
				groups = append(groups, rows)
				total += rows
			}
		}
		if total > 0 {
			o, err := c.writeObject(b, tickets[:n], groups)
			if err != nil {
				return err
			}
			for _, t := range tickets[:n] {
				if o.Rows = int64(len(t.rows)); o.Rows > 0 {
					t.manifest.Objects = append(t.manifest.Objects, o)
					t.manifest.Rows += o.Rows
					o.First += o.Rows
				}
			}
		}
		tickets = tickets[n:]
	}
	return nil
}

// writeObject writes the rows of tickets in one object, and tries again if that fails: nothing of a batch is known to
// have happened before its manifest.
func (c *Committer) writeObject(b *batch, tickets []*Ticket, groups []int64) (commitlog.Object, error) {
	all := func(yield func(rows.Row, error) bool) {
		for _, t := range tickets {
			for _, row := range t.rows {
				if !yield(row, nil) {
					return
				}
			}
		}
	}
	pause := retry.Backoff{Min: c.opts.Backoff}
	for try := 1; ; try++ {
		c.mu.Lock()
		key := b.rowKey()
		c.mu.Unlock()
		info, err := rows.Write(c.ctx, c.opts.Store, key,
			rows.WriteOptions{Compression: c.opts.Compression, Groups: groups}, all)
		if err == nil || try == writeTries || c.ctx.Err() != nil {
			return commitlog.Object{Key: key, Bytes: info.Bytes, CRC32C: info.CRC32C}, err
		}
		c.opts.Log.Warn("rows not written, trying again", "try", try, "error", err)
		if err := pause.Wait(c.ctx); err != nil {
			return commitlog.Object{}, err
		}
	}
}
