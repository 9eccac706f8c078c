package lease

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"giantstream/sink"
)

// Held is a lease that this process holds, as far as it knows. It is safe for concurrent use.
type Held struct {
	lease *Lease
	mu    sync.Mutex // one write of the object at a time
	// record is the content of the object, or would be if the last write had succeeded.
	record Record
	// stored is what the object held when this process last wrote or read it.
	stored []byte
}

// Number is the fencing number.
func (h *Held) Number() int64 { return h.record.Number }

// check returns ErrLost if another process has taken the lease over. It costs one list request.
func (h *Held) check(ctx context.Context) error {
	o := h.lease.opts
	higher, err := list(ctx, o.Store, o.Name, h.Number())
	if err != nil {
		return err
	}
	if len(higher) > 0 {
		return fmt.Errorf("%w: lease %s, ours was number %d, now it is number %d",
			ErrLost, o.Name, h.Number(), higher[len(higher)-1])
	}
	return nil
}

// renew shows other processes that the holder lives.
func (h *Held) renew(ctx context.Context) error {
	return h.write(ctx, func(r *Record) {
		r.Renewals++
		r.Renewed = h.lease.opts.Clock()
	})
}

// Release gives the lease back, so that other processes need not wait for it to expire. Releasing a
// lost lease does nothing.
func (h *Held) Release(ctx context.Context) error {
	err := h.write(ctx, func(r *Record) { r.Released = true })
	if errors.Is(err, ErrLost) {
		return nil
	}
	return err
}

// write replaces the holder's own object, which no other process ever writes.
func (h *Held) write(ctx context.Context, change func(*Record)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.check(ctx); err != nil {
		return err
	}
	o := h.lease.opts
	change(&h.record)
	data, err := h.record.encode(placeOf(o.Store, o.Name, h.Number()))
	if err != nil {
		return err
	}
	if err := h.replace(ctx, key(o.Name, h.Number()), data); err != nil {
		return fmt.Errorf("renew lease %s: %w", o.Name, err)
	}
	h.stored = data
	return nil
}

// replace writes the object, where the store can compare and swap only over what this process has written. So
// a holder that is late neither brings back an object that its successor has removed nor overwrites what
// somebody else has made of it.
func (h *Held) replace(ctx context.Context, key string, data []byte) error {
	store := h.lease.opts.Store
	swap, ok := store.(sink.Replacer)
	if !ok {
		return sink.PutBytes(ctx, store, key, data)
	}
	err := swap.Replace(ctx, key, h.stored, data)
	if errors.Is(err, sink.ErrChanged) {
		// It holds what a write of this process has left whose answer was lost, or it was damaged.
		stored, readErr := sink.ReadAll(ctx, store, key)
		if readErr == nil && h.mayReplace(stored) {
			h.stored = stored
			err = swap.Replace(ctx, key, stored, data)
		}
		err = errors.Join(err, readErr)
	}
	switch {
	case errors.Is(err, sink.ErrUnsupported):
		return sink.PutBytes(ctx, store, key, data)
	case errors.Is(err, sink.ErrNotFound), errors.Is(err, sink.ErrChanged):
		return fmt.Errorf("%w: its object is not ours any more: %w", ErrLost, err)
	}
	return err
}

// mayReplace says whether an object that changed is still this holder's: its own, or damaged.
func (h *Held) mayReplace(stored []byte) bool {
	o := h.lease.opts
	r, err := decode(stored, placeOf(o.Store, o.Name, h.Number()), h.Number())
	return errors.Is(err, errDamaged) || err == nil && r.Session == h.record.Session && !r.Released
}

// renewalsPerTTL lets a renewal fail twice before other processes may take over.
const renewalsPerTTL = 3

// releaseTime bounds the release, which may run after the caller's context has ended.
const releaseTime = 10 * time.Second

// Keep renews the lease in the background. The context that it returns ends when the lease is lost,
// with a cause that is ErrLost. Call release when the work is done.
func (h *Held) Keep(ctx context.Context) (held context.Context, release func()) {
	held, cancel := context.WithCancelCause(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() { h.keep(held, cancel) })
	return held, func() {
		cancel(nil)
		renewing.Wait()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
		defer cancel()
		if err := h.Release(ctx); err != nil {
			o := h.lease.opts
			o.Log.Warn("lease not released; it expires by itself", "lease", o.Name, "in", o.TTL, "error", err)
		}
	}
}

func (h *Held) keep(ctx context.Context, lost context.CancelCauseFunc) {
	o := h.lease.opts
	tick := time.NewTicker(o.TTL / renewalsPerTTL)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := h.renew(ctx); errors.Is(err, ErrLost) {
			lost(err)
			return
		} else if err != nil && ctx.Err() == nil {
			o.Log.Warn("lease not renewed, trying again", "lease", o.Name, "error", err)
		}
	}
}

// Store returns the lease's store with fenced writes: each is refused with ErrLost once the lease
// is lost.
func (h *Held) Store() sink.Store { return fenced{h.lease.opts.Store, h} }

// fenced is a store that checks before every write whether the lease is still held.
type fenced struct {
	sink.Store
	held *Held
}

func (f fenced) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if err := f.held.check(ctx); err != nil {
		return &sink.Error{Op: "put", Key: key, Err: err}
	}
	return f.Store.Put(ctx, key, r, size)
}

func (f fenced) Create(ctx context.Context, key string, data []byte) error {
	if err := f.held.check(ctx); err != nil {
		return &sink.Error{Op: "create", Key: key, Err: err}
	}
	return f.Store.Create(ctx, key, data)
}

func (f fenced) Delete(ctx context.Context, key string) error {
	if err := f.held.check(ctx); err != nil {
		return &sink.Error{Op: "delete", Key: key, Err: err}
	}
	return f.Store.Delete(ctx, key)
}
