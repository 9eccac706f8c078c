// Package memstore keeps a sink.Store in memory, for tests, and can fail any call on demand.
package memstore

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"giantstream/sink"
)

// Store is a sink.Store in memory. The zero value is empty and ready.
type Store struct {
	// Fail, if set, is asked before every call, with the names that sink.Error uses ("put",
	// "create", "open", "read", "list", "delete"); an error it returns becomes the call's. Set it
	// before first use.
	Fail func(op, key string) error
	// FailAfter is asked after every "put", "create" and "delete" that has taken effect: its error
	// stands for a lost response.
	FailAfter func(op, key string) error
	// Now dates objects; time.Now if nil.
	Now func() time.Time
	// Name tells stores apart in URL.
	Name string

	sink.Membership
	mu      sync.Mutex
	objects map[string]entry
}

type entry struct {
	data     []byte
	modified time.Time
}

var (
	_ sink.Store    = (*Store)(nil)
	_ sink.Replacer = (*Store)(nil)
)

// URL implements sink.Store.
func (s *Store) URL() string { return "memory://" + s.Name }

// Put implements sink.Store.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if err := s.begin(ctx, "put", key); err != nil {
		return err
	}
	data, err := io.ReadAll(r)
	if err == nil && int64(len(data)) != size {
		err = fmt.Errorf("the reader gave %d bytes instead of the %d promised", len(data), size)
	}
	if err != nil {
		return &sink.Error{Op: "put", Key: key, Err: err}
	}
	s.mu.Lock()
	s.store(key, data)
	s.mu.Unlock()
	return s.end("put", key)
}

// Create implements sink.Store.
func (s *Store) Create(ctx context.Context, key string, data []byte) error {
	if err := s.begin(ctx, "create", key); err != nil {
		return err
	}
	s.mu.Lock()
	_, taken := s.objects[key]
	if !taken {
		s.store(key, bytes.Clone(data))
	}
	s.mu.Unlock()
	if taken {
		return sink.ConfirmCreate(ctx, s, key, data)
	}
	return s.end("create", key)
}

// Replace implements sink.Replacer. Fail and FailAfter know it as "put".
func (s *Store) Replace(ctx context.Context, key string, old, data []byte) error {
	if err := s.begin(ctx, "put", key); err != nil {
		return err
	}
	s.mu.Lock()
	e, ok := s.objects[key]
	done, err := false, error(&sink.Error{Op: "replace", Key: key, Err: sink.ErrNotFound})
	if ok {
		done, err = sink.CompareStored(key, e.data, old, data)
	}
	if err == nil && !done {
		s.store(key, bytes.Clone(data))
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.end("put", key)
}

// store needs s.mu held.
func (s *Store) store(key string, data []byte) {
	if s.objects == nil {
		s.objects = make(map[string]entry)
	}
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	s.objects[key] = entry{data, now()}
}

// Open implements sink.Store.
func (s *Store) Open(ctx context.Context, key string) (sink.Object, error) {
	if err := s.begin(ctx, "open", key); err != nil {
		return nil, err
	}
	s.mu.Lock()
	e, ok := s.objects[key]
	s.mu.Unlock()
	if !ok {
		return nil, &sink.Error{Op: "open", Key: key, Err: sink.ErrNotFound}
	}
	return &object{store: s, ctx: ctx, key: key, data: bytes.NewReader(e.data)}, nil
}

// List implements sink.Store.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[sink.Info, error] {
	return func(yield func(sink.Info, error) bool) {
		err := sink.CheckPrefix(prefix)
		if err == nil {
			err = s.fail(ctx, "list", prefix)
		}
		if err != nil {
			yield(sink.Info{}, &sink.Error{Op: "list", Key: prefix, Err: err})
			return
		}
		var found []sink.Info
		s.mu.Lock()
		for key, e := range s.objects {
			if strings.HasPrefix(key, prefix) && key > after {
				found = append(found, sink.Info{Key: key, Size: int64(len(e.data)), Modified: e.modified})
			}
		}
		s.mu.Unlock()
		slices.SortFunc(found, func(a, b sink.Info) int { return strings.Compare(a.Key, b.Key) })
		for _, info := range found {
			if !yield(info, nil) {
				return
			}
		}
	}
}

// Delete implements sink.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := s.begin(ctx, "delete", key); err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.objects, key)
	s.mu.Unlock()
	return s.end("delete", key)
}

func (s *Store) begin(ctx context.Context, op, key string) error {
	err := sink.CheckKey(key)
	if err == nil {
		err = s.fail(ctx, op, key)
	}
	if err != nil {
		return &sink.Error{Op: op, Key: key, Err: err}
	}
	return nil
}

func (s *Store) fail(ctx context.Context, op, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.Fail != nil {
		return s.Fail(op, key)
	}
	return nil
}

func (s *Store) end(op, key string) error {
	if s.FailAfter != nil {
		if err := s.FailAfter(op, key); err != nil {
			return &sink.Error{Op: op, Key: key, Err: err}
		}
	}
	return nil
}

// object reads the bytes that were stored when it was opened.
type object struct {
	store *Store
	ctx   context.Context // of Open: reads end with it
	key   string
	data  *bytes.Reader
}

func (o *object) Size() int64  { return o.data.Size() }
func (o *object) Close() error { return nil }

func (o *object) ReadAt(p []byte, off int64) (int, error) {
	if err := o.store.fail(o.ctx, "read", o.key); err != nil {
		return 0, &sink.Error{Op: "read", Key: o.key, Err: err}
	}
	return o.data.ReadAt(p, off)
}
