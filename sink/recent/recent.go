package recent

import (
	"bytes"
	"context"
	"io"
	"slices"
	"sync"

	"giantstream/sink"
)

// Cache holds objects that were stored not long ago, in memory.
type Cache struct {
	limit int64
	keep  func(key string) bool

	mu      sync.Mutex
	objects map[string][]byte
	order   []string // oldest first
	bytes   int64
}

// New returns a cache of up to limit bytes for the objects whose keys keep accepts.
func New(limit int64, keep func(key string) bool) *Cache {
	return &Cache{limit: limit, keep: keep, objects: map[string][]byte{}}
}

// largest is the share of the cache that one object may take.
const largest = 4

// add keeps an object, and forgets the oldest ones for it.
func (c *Cache) add(key string, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.objects[key]; ok {
		return // a Put at the same time was faster
	}
	c.objects[key] = data
	c.order = append(c.order, key)
	c.bytes += int64(len(data))
	for c.bytes > c.limit {
		c.bytes -= int64(len(c.objects[c.order[0]]))
		delete(c.objects, c.order[0])
		c.order = c.order[1:]
	}
}

// drop forgets an object.
func (c *Cache) drop(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	data, ok := c.objects[key]
	if !ok {
		return
	}
	c.bytes -= int64(len(data))
	delete(c.objects, key)
	c.order = slices.DeleteFunc(c.order, func(k string) bool { return k == key })
}

func (c *Cache) get(key string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	data, ok := c.objects[key]
	return data, ok
}

// Store returns a store whose objects the cache remembers. Several stores may share a cache if they show the same
// objects.
func (c *Cache) Store(s sink.Store) *Store { return &Store{s, c} }

// Store is a sink.Store that answers from a Cache what was stored through it.
type Store struct {
	sink.Store
	cache *Cache
}

var (
	_ sink.Fetcher  = (*Store)(nil)
	_ sink.Replacer = (*Store)(nil)
)

// content is what Put can read twice.
type content interface {
	io.ReaderAt
	io.Seeker
}

// Put implements sink.Store.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	s.cache.drop(key)
	var data []byte
	if from, ok := r.(content); ok && size <= s.cache.limit/largest && s.cache.keep(key) {
		if at, err := from.Seek(0, io.SeekCurrent); err == nil {
			data = make([]byte, size)
			if n, _ := from.ReadAt(data, at); int64(n) < size {
				data = nil // the store says what is wrong with it
			}
		}
	}
	if err := s.Store.Put(ctx, key, r, size); err != nil {
		return err
	}
	if data != nil {
		s.cache.add(key, data)
	}
	return nil
}

// Replace implements sink.Replacer, if the store does.
func (s *Store) Replace(ctx context.Context, key string, old, data []byte) error {
	swap, ok := s.Store.(sink.Replacer)
	if !ok {
		return &sink.Error{Op: "replace", Key: key, Err: sink.ErrUnsupported}
	}
	s.cache.drop(key)
	return swap.Replace(ctx, key, old, data)
}

// Delete implements sink.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	s.cache.drop(key)
	return s.Store.Delete(ctx, key)
}

// Open implements sink.Store.
func (s *Store) Open(ctx context.Context, key string) (sink.Object, error) {
	if data, ok := s.cache.get(key); ok {
		return object{bytes.NewReader(data), ctx}, ctx.Err()
	}
	return s.Store.Open(ctx, key)
}

// Fetch implements sink.Fetcher, also over a store that does not.
func (s *Store) Fetch(ctx context.Context, key string, most int64) ([]byte, error) {
	if data, ok := s.cache.get(key); ok {
		return bytes.Clone(data[:min(int64(len(data)), most)]), ctx.Err()
	}
	return sink.ReadUpTo(ctx, s.Store, key, most)
}

type object struct {
	*bytes.Reader
	ctx context.Context // of Open: reads end with it
}

func (o object) Close() error { return nil }

func (o object) ReadAt(p []byte, off int64) (int, error) {
	if err := o.ctx.Err(); err != nil {
		return 0, err
	}
	return o.Reader.ReadAt(p, off)
}
