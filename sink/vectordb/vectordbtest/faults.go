package vectordbtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"giantstream/sink/vectordb"
)

// ErrKilled ends a process. It is final, so that its follower gives up.
var ErrKilled = fmt.Errorf("%w: the process is killed", vectordb.ErrRefused)

var errAway = errors.New("the index does not answer")

// faulty is an index on a bad connection, used by a process that is killed at any moment.
type faulty struct {
	vectordb.Index
	rnd *rand.Rand
	// kill is the chance of a death at a call, fail that of a call without an answer.
	kill, fail float64
	// late are writes that were given up, and that the database gets later.
	late    []func()
	delayed bool
}

// call fails before or after do, or not at all.
func (f *faulty) call(do func() error) error {
	x := f.rnd.Float64()
	err := errAway
	if x < f.kill {
		err = ErrKilled
	} else if x > f.kill+f.fail {
		return do()
	}
	if f.rnd.IntN(2) == 0 {
		if done := do(); done != nil {
			return done
		}
	}
	return err
}

func (f *faulty) Open(ctx context.Context) (saved vectordb.Saved, err error) {
	err = f.call(func() error { saved, err = f.Index.Open(ctx); return err })
	return saved, err
}

func (f *faulty) Save(ctx context.Context, c vectordb.Catalog) error {
	return f.call(func() error { return f.Index.Save(ctx, c) })
}

func (f *faulty) Create(ctx context.Context, t vectordb.Table) error {
	return f.call(func() error { return f.Index.Create(ctx, t) })
}

func (f *faulty) Apply(ctx context.Context, b vectordb.Batch) error {
	if f.delayed && f.rnd.Float64() < 0.1 {
		f.late = append(f.late, func() { _ = f.Index.Apply(context.WithoutCancel(ctx), b) })
		return errAway
	}
	return f.call(func() error { return f.Index.Apply(ctx, b) })
}

// Flush implements vectordb.Flusher.
func (f *faulty) Flush(ctx context.Context, all bool) error {
	x, ok := f.Index.(vectordb.Flusher)
	if !ok {
		return nil
	}
	return f.call(func() error { return x.Flush(ctx, all) })
}

func (f *faulty) Finish(ctx context.Context, t vectordb.Table) error {
	return f.call(func() error { return f.Index.Finish(ctx, t) })
}

func (f *faulty) Serve(ctx context.Context, t vectordb.Table, c vectordb.Catalog) error {
	return f.call(func() error { return f.Index.Serve(ctx, t, c) })
}

func (f *faulty) Drop(ctx context.Context, t vectordb.Table) error {
	return f.call(func() error { return f.Index.Drop(ctx, t) })
}

// arrive lets some of the late writes arrive.
func (f *faulty) arrive(all bool) {
	for i := 0; i < len(f.late); {
		if !all && f.rnd.IntN(3) > 0 {
			i++
			continue
		}
		f.late[i]()
		f.late = append(f.late[:i], f.late[i+1:]...)
	}
}
