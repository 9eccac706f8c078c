package parallel

import (
	"context"
	"iter"

	"golang.org/x/sync/errgroup"
)

// Merge merges sequences that ascend by id into one. No id is in two of them.
func Merge[T any](in []iter.Seq2[T, error], id func(*T) string) iter.Seq2[T, error] {
	type head struct {
		value T
		next  func() (T, error, bool)
	}
	return func(yield func(T, error) bool) {
		var heads []*head
		// advance reports whether the consumer wants more.
		advance := func(h *head) (more, ok bool) {
			value, err, ok := h.next()
			if err != nil {
				yield(value, err)
				return false, false
			}
			h.value = value
			return true, ok
		}
		for _, seq := range in {
			next, stop := iter.Pull2(seq)
			defer stop()
			h := &head{next: next}
			more, ok := advance(h)
			if !more {
				return
			}
			if ok {
				heads = append(heads, h)
			}
		}
		for len(heads) > 0 {
			least := 0
			for i := range heads {
				if id(&heads[i].value) < id(&heads[least].value) {
					least = i
				}
			}
			if !yield(heads[least].value, nil) {
				return
			}
			more, ok := advance(heads[least])
			if !more {
				return
			}
			if !ok {
				heads = append(heads[:least], heads[least+1:]...)
			}
		}
	}
}

// Deal deals a sequence out to n writers, which run at the same time. writerOf says whose a value is.
func Deal[T any](ctx context.Context, in iter.Seq2[T, error], n int, writerOf func(*T) int,
	write func(ctx context.Context, i int, in iter.Seq2[T, error]) error) error {
	g, ctx := errgroup.WithContext(ctx)
	parts := make([]chan T, n)
	for i := range parts {
		parts[i] = make(chan T)
		g.Go(func() error { return write(ctx, i, received(ctx, parts[i])) })
	}
	g.Go(func() error {
		for value, err := range in {
			if err != nil {
				return err // its context tells the writers
			}
			select {
			case parts[writerOf(&value)] <- value:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		for _, part := range parts {
			close(part)
		}
		return nil
	})
	return g.Wait()
}

// received yields what comes over a channel until it is closed, and an error if ctx ends before.
func received[T any](ctx context.Context, part <-chan T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			select {
			case value, ok := <-part:
				if !ok || !yield(value, nil) {
					return
				}
			case <-ctx.Done():
				var none T
				yield(none, ctx.Err())
				return
			}
		}
	}
}
