package lease

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"giantstream/internal/ambient"
	"giantstream/sink"
)

// Errors that callers test.
var (
	// ErrHeld: another process holds the lease. A *HeldError says which.
	ErrHeld = errors.New("lease is held by another process")
	// ErrLost: another process has taken the lease over. This process must not write any more.
	ErrLost = errors.New("lease was taken over by another process")
)

// HeldError says who holds the lease.
type HeldError struct {
	Name string
	Record
	// Seen: this Lease has seen the holder renew, so it certainly lives.
	Seen bool
}

func (e *HeldError) Error() string {
	if e.Damaged != "" {
		return fmt.Sprintf("the object %s of lease %s is damaged (%s); unless a living holder repairs it, it expires "+
			"after %s, or at once by 'giantstream verify --repair'", key(e.Name, e.Number), e.Name, e.Damaged,
			defaultTTL)
	}
	return fmt.Sprintf("lease %s is held by %s since %s, last renewed at %s (holder's clock)",
		e.Name, e.Holder, e.Acquired.UTC().Format(time.DateTime), e.Renewed.UTC().Format(time.TimeOnly))
}

// Unwrap makes a HeldError an ErrHeld.
func (e *HeldError) Unwrap() error { return ErrHeld }

// defaultTTL is how long a holder may be silent before it is taken for dead.
const defaultTTL = 30 * time.Second

// maxTTL bounds what a record may ask others to wait.
const maxTTL = time.Hour

// Options of a Lease.
type Options struct {
	Store sink.Store
	// Name of the right, a key segment.
	Name string
	// Holder names this process for people.
	Holder string
	// Process identifies this process to the Ended functions of others; "" if they cannot recognise
	// it.
	Process string
	// Ended reports whether a process has certainly ended, so that its lease may be taken at once.
	// If nil, no process is known to have ended.
	Ended func(process string) bool
	TTL   time.Duration    // defaultTTL if 0
	Clock func() time.Time // time.Now if nil; must not jump, as time.Now's differences do not
	Log   *slog.Logger     // discarded if nil
	Rand  io.Reader        // crypto/rand if nil
}

// Lease is one process's view of a lease. It remembers since when the holder has been silent, so
// call Acquire of the same Lease again. It is not safe for concurrent use.
type Lease struct {
	opts    Options
	session string
	// seen is the newest object as last read; since is when this process first saw it in that
	// state.
	seen   []byte
	number int64
	since  time.Time
	// renewed: the object of this number has changed since this process first saw it.
	renewed bool
}

// New returns a view of the lease; nothing is read or written yet.
func New(o Options) (*Lease, error) {
	if o.TTL <= 0 {
		o.TTL = defaultTTL
	}
	if o.TTL > maxTTL {
		return nil, fmt.Errorf("lease %s: a time to live of %s is over %s", o.Name, o.TTL, maxTTL)
	}
	if o.Ended == nil {
		o.Ended = func(string) bool { return false }
	}
	o.Clock, o.Log, o.Rand = ambient.Clock(o.Clock), ambient.Log(o.Log), ambient.Rand(o.Rand)
	var random [8]byte
	if _, err := io.ReadFull(o.Rand, random[:]); err != nil {
		return nil, fmt.Errorf("draw a session id: %w", err)
	}
	return &Lease{opts: o, session: fmt.Sprintf("%x", random)}, nil
}

// maxAttempts bounds how often Acquire tries again after another process was faster.
const maxAttempts = 5

// Acquire takes the lease if it is free, and returns a *HeldError if it is not. It does not wait.
// Call it again and again: only repeated calls reveal that a holder is silent.
func (l *Lease) Acquire(ctx context.Context) (*Held, error) {
	for attempt := 1; ; attempt++ {
		held, err := l.attempt(ctx)
		if err == nil || attempt == maxAttempts || !errors.Is(err, sink.ErrExists) && !errors.Is(err, ErrLost) {
			return held, err
		}
	}
}

// attempt tries once; ErrExists and ErrLost mean that another process was faster.
func (l *Lease) attempt(ctx context.Context) (*Held, error) {
	numbers, err := list(ctx, l.opts.Store, l.opts.Name, 0)
	if err != nil {
		return nil, err
	}
	number := int64(1)
	if len(numbers) > 0 {
		newest := numbers[len(numbers)-1]
		r, data, err := read(ctx, l.opts.Store, l.opts.Name, newest)
		switch {
		case err != nil:
			return nil, err
		case r == nil: // removed since, by the holder of a higher number
			return nil, fmt.Errorf("%w: number %d is gone", ErrLost, newest)
		case r.Session == l.session && !r.Released:
			// An earlier call took it, and its answer was lost.
			held := &Held{lease: l, record: *r, stored: data}
			return held, held.renew(ctx)
		}
		if !l.free(newest, r, data) {
			return nil, &HeldError{l.opts.Name, *r, l.renewed}
		}
		number = newest + 1
	}
	return l.take(ctx, number, numbers)
}

// free remembers the state of the newest object and decides whether the lease may be taken.
func (l *Lease) free(number int64, r *Record, data []byte) bool {
	now := l.opts.Clock()
	if number != l.number || !bytes.Equal(data, l.seen) {
		l.renewed = number == l.number && !r.Released
		l.number, l.seen, l.since = number, data, now
	}
	silent := now.Sub(l.since)
	switch {
	case r.Damaged != "" && silent >= defaultTTL:
		l.opts.Log.Warn("the lease's object is damaged, and no holder has repaired it; taking over under the next "+
			"number", "lease", l.opts.Name, "object", key(l.opts.Name, number), "damage", r.Damaged,
			"silent_for", silent)
	case r.Damaged != "":
		return false
	case r.Released:
	case r.Process != "" && l.opts.Ended(r.Process):
		l.opts.Log.Info("the lease's holder has ended without releasing it", "lease", l.opts.Name, "holder", r.Holder)
	case silent >= time.Duration(r.TTLMillis)*time.Millisecond:
		l.opts.Log.Warn("the lease's holder is silent; taking over", "lease", l.opts.Name, "holder", r.Holder,
			"silent_for", silent)
	default:
		return false
	}
	return true
}

// take creates the number and removes the lower ones.
func (l *Lease) take(ctx context.Context, number int64, lower []int64) (*Held, error) {
	o := l.opts
	now := o.Clock()
	held := &Held{lease: l, record: Record{Format: recordFormat, Number: number, Holder: o.Holder, Session: l.session,
		Process: o.Process, TTLMillis: o.TTL.Milliseconds(), Acquired: now, Renewed: now}}
	data, err := held.record.encode(placeOf(o.Store, o.Name, number))
	if err != nil {
		return nil, err
	}
	if err := o.Store.Create(ctx, key(o.Name, number), data); err != nil {
		return nil, fmt.Errorf("take lease %s: %w", o.Name, err)
	}
	held.stored = data
	if err := held.check(ctx); err != nil { // see doc.go, "Numbers"
		return nil, err
	}
	for _, n := range lower {
		if err := o.Store.Delete(ctx, key(o.Name, n)); err != nil {
			o.Log.Debug("old lease object not removed; the next holder will",
				"lease", o.Name, "number", n, "error", err)
		}
	}
	return held, nil
}

// read returns an object and its bytes, nil if it is gone. A damaged object is one of an unknown holder, which
// may live and repair it with its next renewal.
func read(ctx context.Context, store sink.Store, name string, number int64) (*Record, []byte, error) {
	data, err := sink.ReadAll(ctx, store, key(name, number))
	if errors.Is(err, sink.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("look at lease %s: %w", name, err)
	}
	r, err := decode(data, placeOf(store, name, number), number)
	if errors.Is(err, errDamaged) {
		return &Record{Number: number, Holder: "an unknown process", TTLMillis: defaultTTL.Milliseconds(),
			Damaged: err.Error()}, data, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", key(name, number), err)
	}
	return r, data, nil
}
