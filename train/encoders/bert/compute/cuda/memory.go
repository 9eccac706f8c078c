//go:build cuda

package cuda

import (
	"errors"
	"math/bits"
	"runtime"
	"sync"
	"time"

	"gorgonia.org/cu"
)

// memory is an allocation; at is 0 before it is made and after it was freed.
type memory struct {
	at    cu.DevicePtr
	bytes int
}

// pool hands out memory of the device. Freed memory stays, by size, since a training step asks for
// the same sizes again and again; it goes back to the driver when there is no room for another size.
type pool struct {
	limit int64
	used  int64                // from the driver, free memory included
	all   map[cu.DevicePtr]int // sizes of what used counts
	free  map[int][]cu.DevicePtr

	mu    sync.Mutex
	freed []*memory // by the garbage collector, to be taken into free
}

// track returns a buffer without memory. When nothing refers to it any more, its memory is freed:
// operations that use it were queued before, and the stream has them in order.
func (d *device) track(n int) *buffer {
	b := &buffer{n: n, m: &memory{bytes: max(4*n, 4)}}
	runtime.AddCleanup(b, func(m *memory) {
		d.pool.mu.Lock()
		defer d.pool.mu.Unlock()
		d.pool.freed = append(d.pool.freed, m)
	}, b.m)
	return b
}

// free gives a buffer's memory to the pool after the operations that were queued before. It does not wait, since
// the garbage collector calls it, for which an allocation may be waiting.
func (d *device) free(b *buffer) {
	give := func(d *device) {
		if b.m.at != 0 {
			d.pool.free[b.m.bytes] = append(d.pool.free[b.m.bytes], b.m.at)
			b.m.at = 0
		}
	}
	select {
	case d.work <- give:
	default:
		go d.queue(give)
	}
}

// allocate gives a buffer its memory.
func (d *device) allocate(b *buffer) error {
	bytes := b.m.bytes
	if at, ok := d.pool.take(bytes); ok {
		b.m.at = at
		return nil
	}
	for _, room := range []func(){func() {}, d.pool.release, d.collect} {
		room()
		if at, ok := d.pool.take(bytes); ok {
			b.m.at = at
			return nil
		}
		if d.pool.used+int64(bytes) > d.pool.limit {
			continue
		}
		at, err := cu.MemAlloc(int64(bytes))
		if errors.Is(err, cu.OutOfMemory) {
			continue
		}
		if err != nil {
			return d.failed("allocating", err)
		}
		d.pool.used += int64(bytes)
		d.pool.all[at] = bytes
		b.m.at = at
		return nil
	}
	return d.full("allocating", bytes)
}

// take returns freed memory of the given size.
func (p *pool) take(bytes int) (at cu.DevicePtr, ok bool) {
	p.sweep()
	of := p.free[bytes]
	if len(of) == 0 {
		return 0, false
	}
	p.free[bytes] = of[:len(of)-1]
	return of[len(of)-1], true
}

// sweep takes what the garbage collector freed.
func (p *pool) sweep() {
	p.mu.Lock()
	freed := p.freed
	p.freed = nil
	p.mu.Unlock()
	for _, m := range freed {
		if m.at != 0 {
			p.free[m.bytes] = append(p.free[m.bytes], m.at)
		}
	}
}

// release gives all free memory back to the driver.
func (p *pool) release() {
	p.sweep()
	for _, of := range p.free {
		for _, at := range of {
			p.giveBack(at)
		}
	}
	clear(p.free)
}

// giveBack frees memory. A driver that fails here fails at the next call, too, which reports it.
func (p *pool) giveBack(at cu.DevicePtr) {
	_ = cu.MemFree(at)
	p.used -= int64(p.all[at])
	delete(p.all, at)
}

// scratch returns memory for n numbers of 32 bits that lasts for one operation.
func (d *device) scratch(n int) (cu.DevicePtr, error) {
	if d.room == nil || d.room.n < n {
		if d.room != nil {
			d.pool.free[d.room.m.bytes] = append(d.pool.free[d.room.m.bytes], d.room.m.at)
			d.room = nil
		}
		// Twice as much as before, or the pool would fill with sizes that nothing asks for again.
		size := 1 << bits.Len(uint(n))
		b := &buffer{n: size, m: &memory{bytes: 4 * size}}
		if err := d.allocate(b); err != nil {
			return 0, err
		}
		d.room = b
	}
	return d.room.m.at, nil
}

// collectTime is how long to wait for the garbage collector before an allocation is given up.
const collectTime = time.Second

// collect makes the garbage collector free buffers, since it does not know how large they are.
func (d *device) collect() {
	// Cleanups run on a goroutine of their own; that of an object of this cycle says that it came by.
	ran := make(chan struct{})
	runtime.AddCleanup(new([16]int64), func(ran chan struct{}) { close(ran) }, ran)
	runtime.GC()
	select {
	case <-ran:
	case <-time.After(collectTime):
	}
	runtime.GC()
	d.pool.release()
}
