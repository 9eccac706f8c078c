package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"giantstream/sink"
)

// Recorder passes changes to a store one at a time, so that their order is known, and shows each to
// a Checker. It looks into the store after every call, so it sees what a call has done whatever its
// answer.
type Recorder struct {
	store sink.Store

	mu      sync.Mutex
	checker *Checker
	changes int
	failed  error // a look into the store
}

// NewRecorder returns a recorder for a store that is empty.
func NewRecorder(store sink.Store) *Recorder {
	return &Recorder{store: store, checker: NewChecker()}
}

// Change runs a call that may change one object. The call must not return before the store is done
// with it.
func (r *Recorder) Change(ctx context.Context, key string, call func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	call()
	data, err := sink.ReadAll(context.WithoutCancel(ctx), r.store, key)
	switch {
	case errors.Is(err, sink.ErrNotFound):
		data = nil
	case err != nil:
		r.failed = errors.Join(r.failed, fmt.Errorf("look at %s: %w", key, err))
		return
	case data == nil:
		data = []byte{}
	}
	if r.checker.Observe(key, data) {
		r.changes++
	}
}

// Err says which changes the specification does not allow, and what could not be looked at.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.failed, r.checker.Err())
}

// Changes is how many changes were seen.
func (r *Recorder) Changes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changes
}

// Store returns the store with its changes recorded.
func (r *Recorder) Store() sink.Store { return recorded{r.store, r} }

type recorded struct {
	sink.Store
	recorder *Recorder
}

func (s recorded) Put(ctx context.Context, key string, content io.Reader, size int64) (err error) {
	s.recorder.Change(ctx, key, func() { err = s.Store.Put(ctx, key, content, size) })
	return err
}

func (s recorded) Create(ctx context.Context, key string, data []byte) (err error) {
	s.recorder.Change(ctx, key, func() { err = s.Store.Create(ctx, key, data) })
	return err
}

// Replace implements sink.Replacer, if the store does.
func (s recorded) Replace(ctx context.Context, key string, old, data []byte) error {
	swap, ok := s.Store.(sink.Replacer)
	if !ok {
		return sink.ErrUnsupported
	}
	var err error
	s.recorder.Change(ctx, key, func() { err = swap.Replace(ctx, key, old, data) })
	return err
}

func (s recorded) Delete(ctx context.Context, key string) (err error) {
	s.recorder.Change(ctx, key, func() { err = s.Store.Delete(ctx, key) })
	return err
}
