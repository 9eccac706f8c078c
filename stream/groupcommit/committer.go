package groupcommit

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"giantstream/internal/ambient"
	"giantstream/sink"
	"giantstream/sink/parquetio"
	"giantstream/stream/commitlog"
)

var (
	// ErrSealed: another worker has ended the session. The window is not committed; begin again.
	ErrSealed = errors.New("session was ended by another worker")
	// ErrSuperseded: the process has opened the shard again, or another worker has committed for it.
	ErrSuperseded = errors.New("shard was opened again since")
)

// Options of a Committer.
type Options struct {
	Store sink.Store
	// Writer names the process, for people who read manifests. The session's id is appended.
	Writer string
	// Window is how long the windows of the shards last.
	Window time.Duration
	// Compression of the shared row objects; "" is Zstandard.
	Compression parquetio.Compression
	// OnRepeat, if set, is called with the manifests that the session commits without a window: delegations, and those
	// of shards that had nothing to commit. Those of a shard come in order, before the shard's next Commit returns.
	OnRepeat func(*commitlog.Manifest)
	Clock    func() time.Time // time.Now if nil
	Log      *slog.Logger     // discarded if nil
	Rand     io.Reader        // crypto/rand if nil
	Backoff  time.Duration    // first pause between attempts; 0 means 100 ms
	// Linger bounds how long a group manifest waits for windows that end at the same time; 0 means a tenth of Window,
	// at most 100 ms.
	Linger time.Duration
}

const (
	defaultBackoff = 100 * time.Millisecond
	// lingerMax and lingerShare are of Options.Linger.
	lingerMax   = 100 * time.Millisecond
	lingerShare = 10
	writeTries  = 6 // of a row object
)

// Committer commits the windows of the shards of a process together. Its methods may be called from several goroutines.
type Committer struct {
	ctx     context.Context // the life of the process
	opts    Options
	creator commitlog.Creator

	mu      sync.Mutex
	members map[int]*Member   // newest opening of each shard
	open    map[int]time.Time // since when the windows are open
	batch   *batch            // nil for none
	session *session          // nil before the first batch, and after the session's end
}

// session is the state of the session's log.
type session struct {
	id      string
	number  int64                       // of the newest group manifest
	objects int64                       // row objects written
	lines   map[int]*commitlog.Manifest // newest manifest of the shards that are in the newest group manifest
	// delegated are manifests that delegate a shard to the session from the next group manifest on.
	delegated map[int]*commitlog.Manifest
	released  map[int]bool // shards that the next group manifest is to leave out
}

// New returns a Committer that works until ctx ends.
func New(ctx context.Context, o Options) *Committer {
	o.Clock, o.Log, o.Rand = ambient.Clock(o.Clock), ambient.Log(o.Log), ambient.Rand(o.Rand)
	if o.Backoff <= 0 {
		o.Backoff = defaultBackoff
	}
	if o.Linger <= 0 {
		o.Linger = min(lingerMax, o.Window/lingerShare)
	}
	return &Committer{ctx: ctx, opts: o, creator: commitlog.Creator{Store: o.Store, Backoff: o.Backoff, Log: o.Log},
		members: map[int]*Member{}, open: map[int]time.Time{}}
}

// Member is one opening of a shard.
type Member struct {
	c     *Committer
	shard int
}

// Join begins an opening of a shard. The one before it can begin no commit. A manifest of it that is on its way may
// still be written: then Begin returns ErrSuperseded, unless the caller has read that manifest as its head.
func (c *Committer) Join(shard int) *Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := &Member{c, shard}
	c.members[shard] = m
	delete(c.open, shard)
	return m
}

// Leave ends the opening.
func (m *Member) Leave() {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	if m.c.members[m.shard] == m {
		delete(m.c.members, m.shard)
		delete(m.c.open, m.shard)
		m.c.batch.notify()
	}
}

// Release lets other processes have the shards that are not open here, without harm to the session: it soon has a group
// manifest without them, in which their lines end. Who takes one of them over before that seals the session, as ever.
func (c *Committer) Release(shards ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == nil {
		return
	}
	for _, shard := range shards {
		if c.members[shard] == nil && c.session.lines[shard] != nil {
			c.session.released[shard] = true
		}
	}
	if len(c.session.released) > 0 && c.batch == nil {
		c.begin()
	}
}

// Opened says that the shard's window has records since then.
func (m *Member) Opened(since time.Time) {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	if m.c.members[m.shard] == m {
		m.c.open[m.shard] = since
	}
}

// End returns when the open windows of the process end together, the zero time if none is open.
func (m *Member) End() time.Time {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	return m.c.end()
}

func (c *Committer) end() (end time.Time) {
	for _, since := range c.open {
		if e := since.Add(c.opts.Window); end.IsZero() || e.Before(end) {
			end = e
		}
	}
	return end
}

// Begin takes part in the next group manifest, which waits for the ticket from now on. head is the shard's newest
// manifest, nil for none. The error is commitlog.ErrTaken or ErrSuperseded if another worker, or another opening, has
// the shard. It is ErrSealed if the session has ended; begin again.
func (m *Member) Begin(ctx context.Context, head *commitlog.Manifest) (*Ticket, error) {
	t, err := m.join(ctx)
	if err != nil {
		return nil, err
	}
	if t.head, err = t.adopt(ctx, head); err != nil {
		t.Abandon()
		return nil, err
	}
	return t, nil
}

// join waits for a batch that can be joined.
func (m *Member) join(ctx context.Context) (*Ticket, error) {
	c := m.c
	for {
		c.mu.Lock()
		if c.members[m.shard] != m {
			c.mu.Unlock()
			return nil, ErrSuperseded
		}
		b := c.batch
		if b == nil || !b.closed {
			t, err := c.ticket(m)
			c.mu.Unlock()
			return t, err
		}
		c.mu.Unlock()
		select {
		case <-b.finished:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ticket adds the member to the batch. c.mu is held.
func (c *Committer) ticket(m *Member) (*Ticket, error) {
	if c.session == nil {
		var random [6]byte
		if _, err := io.ReadFull(c.opts.Rand, random[:]); err != nil {
			return nil, fmt.Errorf("draw a session id: %w", err)
		}
		c.session = &session{id: hex.EncodeToString(random[:]), lines: map[int]*commitlog.Manifest{},
			delegated: map[int]*commitlog.Manifest{}, released: map[int]bool{}}
	}
	if c.batch == nil {
		c.begin()
	}
	if c.batch.tickets[m.shard] != nil {
		return nil, ErrSuperseded // an earlier opening is about to commit
	}
	delete(c.session.released, m.shard) // it has come back
	t := &Ticket{member: m, batch: c.batch, done: make(chan error, 1)}
	c.batch.tickets[m.shard] = t
	return t, nil
}

// begin makes the session's next batch. c.mu is held.
func (c *Committer) begin() {
	c.batch = &batch{session: c.session, number: c.session.number + 1, tickets: map[int]*Ticket{},
		changed: make(chan struct{}, 1), finished: make(chan struct{})}
	go c.run(c.batch)
}

// adopt returns the manifest that the ticket's manifest follows. It has no window that head does not know.
func (t *Ticket) adopt(ctx context.Context, head *commitlog.Manifest) (*commitlog.Manifest, error) {
	c, s, shard := t.member.c, t.batch.session, t.member.shard
	c.mu.Lock()
	last := s.lines[shard]
	if last == nil {
		last = s.delegated[shard]
	}
	c.mu.Unlock()
	known := int64(0)
	if head != nil {
		known = head.Seq
	}
	if last != nil && last.Seq < known {
		// The shard has gone on elsewhere, so the session is sealed.
		c.mu.Lock()
		t.batch.closed, t.batch.sealed = true, true
		c.mu.Unlock()
		return nil, fmt.Errorf("%w: it has manifest %d of shard %d, which is at %d", ErrSealed, last.Seq, shard, known)
	}
	if last != nil {
		if last.RepeatsOf() > known {
			return nil, fmt.Errorf("%w: session %s has manifest %d of shard %d, this opening knows %d", ErrSuperseded,
				s.id, last.Seq, shard, known)
		}
		return last, nil
	}
	last, err := commitlog.Takeover(ctx, c.opts.Store, shard, head, t.Writer(), c.opts.Clock())
	if errors.Is(err, commitlog.ErrRemoved) {
		return nil, fmt.Errorf("%w: %w", commitlog.ErrTaken, err)
	}
	if err != nil {
		return nil, err
	}
	if last.RepeatsOf() > known {
		return nil, fmt.Errorf("%w: another worker has committed manifest %d of shard %d", commitlog.ErrTaken,
			last.RepeatsOf(), shard)
	}
	d := last.Delegate(shard, commitlog.Delegation{Session: s.id, From: t.batch.number}, t.Writer(), c.opts.Clock())
	if err := c.creator.Create(ctx, d); err != nil {
		return nil, err
	}
	c.mu.Lock()
	s.delegated[shard] = d
	c.mu.Unlock()
	if c.opts.OnRepeat != nil {
		c.opts.OnRepeat(d)
	}
	return d, nil
}
