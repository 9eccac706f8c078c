package sim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"giantstream/sink"
)

// store is the object store as one actor sees it: slow, and with failures. It implements sink.Store
// and sink.Replacer.
type store struct {
	sink.Membership
	actor *actor
	// wrote, if set, is called after every Put and Replace that has taken effect. answered, if set, is called at the
	// end of every Open, Put and Replace.
	wrote    func(key string)
	answered func(err error)
}

func (a *actor) store() *store { return &store{actor: a} }

// URL implements sink.Store.
func (s *store) URL() string { return "sim://" }

// Put implements sink.Store.
func (s *store) Put(ctx context.Context, key string, r io.Reader, size int64) (err error) {
	defer func() { s.tell(err) }()
	data, err := io.ReadAll(r)
	if err != nil {
		return &sink.Error{Op: "put", Key: key, Err: err}
	}
	if _, err := s.actor.begin(ctx, "put", key); err != nil {
		return &sink.Error{Op: "put", Key: key, Err: err}
	}
	w := s.actor.process.world
	w.watch.put(s.actor, key, data)
	if err := w.store.Put(context.Background(), key, bytes.NewReader(data), size); err != nil {
		return err
	}
	if s.wrote != nil {
		s.wrote(key)
	}
	return s.end(ctx, "put", key)
}

// Replace implements sink.Replacer.
func (s *store) Replace(ctx context.Context, key string, old, data []byte) (err error) {
	defer func() {
		if errors.Is(err, sink.ErrChanged) {
			s.tell(nil) // an answer
		} else {
			s.tell(err)
		}
	}()
	if _, err := s.actor.begin(ctx, "replace", key); err != nil {
		return &sink.Error{Op: "replace", Key: key, Err: err}
	}
	w := s.actor.process.world
	if err := w.store.Replace(context.Background(), key, old, data); err != nil {
		return err
	}
	w.watch.replaced(key, data)
	if s.wrote != nil {
		s.wrote(key)
	}
	return s.end(ctx, "replace", key)
}

// Create implements sink.Store. A request whose reply never came may take effect late.
func (s *store) Create(ctx context.Context, key string, data []byte) error {
	under := s.actor.process.world.watch.heldBy(s.actor)
	fate, err := s.actor.begin(ctx, "create", key)
	if err != nil {
		if fate == dropped {
			s.late(key, bytes.Clone(data), under)
		}
		return &sink.Error{Op: "create", Key: key, Err: err}
	}
	if err := s.create(key, data, under); err != nil {
		return err
	}
	return s.end(ctx, "create", key)
}

// create takes effect for a caller that held number under of the lease when it asked.
func (s *store) create(key string, data []byte, under int64) error {
	w := s.actor.process.world
	err := w.store.Create(context.Background(), key, data)
	if err == nil {
		w.watch.created(s.actor, key, data, under)
	}
	return err
}

// late lets a Create take effect in a while, whatever has become of its caller.
func (s *store) late(key string, data []byte, under int64) {
	w := s.actor.process.world
	n, slot := s.actor.count("late", key)
	r := w.dice.randFor("late", s.actor.name, key, n)
	w.late.Go(func() {
		defer w.recovered()
		_ = w.pause(context.Background(), drawDuration(r, 0, 8*time.Second), slot)
		w.trace.note(s.actor.name, "late create "+key)
		_ = s.create(key, data, under) // nobody waits for the answer
	})
}

// Open implements sink.Store.
func (s *store) Open(ctx context.Context, key string) (_ sink.Object, err error) {
	defer func() { s.tell(err) }()
	if _, err := s.actor.begin(ctx, "open", key); err != nil {
		return nil, &sink.Error{Op: "open", Key: key, Err: err}
	}
	w := s.actor.process.world
	w.watch.opened(s.actor, key)
	o, err := w.store.Open(context.Background(), key)
	if err != nil {
		return nil, err
	}
	return &object{o, s.actor, ctx, key}, nil
}

// List implements sink.Store.
func (s *store) List(ctx context.Context, prefix, after string) iter.Seq2[sink.Info, error] {
	return func(yield func(sink.Info, error) bool) {
		if _, err := s.actor.begin(ctx, "list", prefix); err != nil {
			yield(sink.Info{}, &sink.Error{Op: "list", Key: prefix, Err: err})
			return
		}
		s.actor.process.world.store.List(context.Background(), prefix, after)(yield)
	}
}

// Delete implements sink.Store.
func (s *store) Delete(ctx context.Context, key string) error {
	if _, err := s.actor.begin(ctx, "delete", key); err != nil {
		return &sink.Error{Op: "delete", Key: key, Err: err}
	}
	w := s.actor.process.world
	w.watch.deleted(s.actor, key)
	if err := w.store.Delete(context.Background(), key); err != nil {
		return err
	}
	return s.end(ctx, "delete", key)
}

func (s *store) tell(err error) {
	if s.answered != nil {
		s.answered(err)
	}
}

func (s *store) end(ctx context.Context, op, key string) error {
	if err := s.actor.end(ctx, op, key); err != nil {
		return &sink.Error{Op: op, Key: key, Err: err}
	}
	return nil
}

// object is an open object. Its content does not change, so reading takes no time of its own.
type object struct {
	sink.Object
	actor *actor
	ctx   context.Context // of Open: reads end with it
	key   string
}

// ReadAt implements sink.Object.
func (o *object) ReadAt(p []byte, off int64) (int, error) {
	err := o.ctx.Err()
	if err == nil && o.actor.process.isKilled() {
		err = errKilled
	}
	if err != nil {
		return 0, &sink.Error{Op: "read", Key: o.key, Err: err}
	}
	return o.Object.ReadAt(p, off)
}
