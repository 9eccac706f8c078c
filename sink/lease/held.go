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

// Held is a lease that this process holds, as far as it knows. Its methods
// may be called from several goroutines.
type Held struct {
	lease *Lease
	mu    sync.Mutex // one write of the object at a time
	// record is what the object says, or would if the last write had worked.
	record Record
}

// Number is the fencing number.
func (h *Held) Number() int64 { return h.record.Number }

// Check returns ErrLost if another process has taken the lease over. It costs
// one list request.
func (h *Held) Check(ctx context.Context) error {
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

// Renew shows others that the holder lives.
func (h *Held) Renew(ctx context.Context) error {
	return h.write(ctx, func(r *Record) {
		r.Renewals++
		r.Renewed = h.lease.opts.Clock()
	})
}

// Release gives the lease back: others need not wait for it to expire.
// Releasing a lease that was lost does nothing.
func (h *Held) Release(ctx context.Context) error {
	err := h.write(ctx, func(r *Record) { r.Released = true })
	if errors.Is(err, ErrLost) {
		return nil
	}
	return err
}

// write replaces the lease's own object, which nobody else ever writes.
func (h *Held) write(ctx context.Context, change func(*Record)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.Check(ctx); err != nil {
		return err
	}
	o := h.lease.opts
	change(&h.record)
	data, err := h.record.encode()
	if err != nil {
		return err
	}
	if err := sink.PutBytes(ctx, o.Store, key(o.Name, h.Number()), data); err != nil {
		return fmt.Errorf("renew lease %s: %w", o.Name, err)
	}
	return nil
}

// renewalsPerTTL: a renewal may fail twice before others may take over.
const renewalsPerTTL = 3

// releaseTime bounds the release, which happens after its context has ended.
const releaseTime = 10 * time.Second

// Keep renews the lease in the background. The context that it returns ends
// when the lease is lost, with a cause that is ErrLost. Call release when the work is done.
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
		if err := h.Renew(ctx); errors.Is(err, ErrLost) {
			lost(err)
			return
		} else if err != nil && ctx.Err() == nil {
			o.Log.Warn("lease not renewed, trying again", "lease", o.Name, "error", err)
		}
	}
}

// Store returns the lease's store with every write fenced: it is refused with
// ErrLost once the lease is lost.
func (h *Held) Store() sink.Store { return fenced{h.lease.opts.Store, h} }

// fenced is a store whose writes ask first whether the lease is still held.
type fenced struct {
	sink.Store
	held *Held
}

func (f fenced) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if err := f.held.Check(ctx); err != nil {
		return &sink.Error{Op: "put", Key: key, Err: err}
	}
	return f.Store.Put(ctx, key, r, size)
}

func (f fenced) Create(ctx context.Context, key string, data []byte) error {
	if err := f.held.Check(ctx); err != nil {
		return &sink.Error{Op: "create", Key: key, Err: err}
	}
	return f.Store.Create(ctx, key, data)
}

func (f fenced) Delete(ctx context.Context, key string) error {
	if err := f.held.Check(ctx); err != nil {
		return &sink.Error{Op: "delete", Key: key, Err: err}
	}
	return f.Store.Delete(ctx, key)
}
