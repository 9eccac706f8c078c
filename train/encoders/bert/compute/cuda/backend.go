//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"gorgonia.org/cu"

	"giantstream/train/encoders/bert/compute"
)

// Options says which device runs the operations.
type Options struct {
	// Device is its number, from 0.
	Device int
	// Memory is how many bytes buffers may take of it; 0 for nine tenths of what is free.
	Memory int64
	// Math is how it multiplies; "" is compute.Float32. The others need tensor cores.
	Math compute.Math
}

var (
	// ErrMemory: the device's memory or the limit of it is used up.
	ErrMemory = errors.New("out of memory")
	// ErrLost: the device failed, so that nothing on it can be used any more.
	ErrLost = errors.New("the device is lost")
	// ErrClosed: the backend was used after Close.
	ErrClosed = errors.New("cuda: the backend is closed")
)

// Backend implements compute.Backend.
type Backend struct {
	device  *device
	batches *batches
}

var (
	_ compute.Backend    = (*Backend)(nil)
	_ compute.Batcher    = (*Backend)(nil)
	_ compute.Multiplier = (*Backend)(nil)
	_ compute.Freer      = (*Backend)(nil)
)

// Open opens a device. The caller must call Close.
func Open(o Options) (*Backend, error) {
	d, err := open(o)
	if err != nil {
		return nil, err
	}
	return &Backend{device: d, batches: new(batches)}, nil
}

// Close waits for all operations and gives the device back. It returns the first error of an
// operation that Read has not returned.
func (be *Backend) Close() error { return be.device.close() }

// Name is the device's name, as its driver gives it.
func (be *Backend) Name() string { return be.device.name }

// Emulated reports whether the device is the driver for tests (package emulation).
func (be *Backend) Emulated() bool { return strings.HasPrefix(be.device.name, "emulated ") }

// Math implements compute.Multiplier.
func (be *Backend) Math() compute.Math { return be.device.math }

// maxBatchTokens is enough to keep a device busy.
const maxBatchTokens = 1 << 14

// BatchTokens implements compute.Batcher: four batches fit into the limit of the memory.
func (be *Backend) BatchTokens(bytes int64) int {
	return int(min(maxBatchTokens, be.device.pool.limit/4/max(1, bytes)))
}

// Spread implements compute.Backend. The device spreads every operation by itself.
func (be *Backend) Spread(int) compute.Backend { return be }

// buffer is memory of the device. Its memory is known once the queue has come to its allocation, so
// only the device's goroutine uses it.
type buffer struct {
	n int
	m *memory
}

// Len implements compute.Buffer.
func (b *buffer) Len() int { return b.n }

// devicePtr returns the address of number i. A buffer of another backend is a mistake of the program.
func devicePtr(b compute.Buffer, i int) cu.DevicePtr { return b.(*buffer).m.at + cu.DevicePtr(i*4) }

// New implements compute.Backend.
func (be *Backend) New(n int) compute.Buffer {
	b := be.device.track(n)
	be.device.do(func(d *device) error { return d.allocate(b) })
	return b
}

// Free implements compute.Freer. A buffer that was freed is freed no more, and must not be used.
func (be *Backend) Free(b compute.Buffer) { be.device.free(b.(*buffer)) }

// Upload implements compute.Backend.
func (be *Backend) Upload(data []float32) compute.Buffer {
	b := be.device.track(len(data))
	be.device.do(func(d *device) error {
		if err := d.allocate(b); err != nil {
			return err
		}
		return upload(d, devicePtr(b, 0), data)
	})
	return b
}

// Write implements compute.Backend.
func (be *Backend) Write(dst compute.Buffer, src []float32) {
	data := slices.Clone(src) // src is the caller's again before the copy begins
	be.device.do(func(d *device) error { return upload(d, devicePtr(dst, 0), data) })
}

// Read implements compute.Backend.
func (be *Backend) Read(dst []float32, src compute.Buffer) error {
	if n := src.Len(); n < len(dst) {
		return fmt.Errorf("cuda: read %d numbers of a buffer of %d", len(dst), n)
	}
	return be.device.wait(func(d *device) error { return d.download(dst, devicePtr(src, 0)) })
}

// batches remembers the batches whose indices were uploaded last: the layers of a model use the same
// batch one after another, and a training step comes back to the batches whose activations it kept.
type batches struct {
	mu   sync.Mutex
	last []*batch // the latest first
}

// rememberedBatches is how many there are, more than a training step keeps.
const rememberedBatches = 8

// batch is what kernels need of a compute.Batch.
type batch struct {
	host compute.Batch
	// Indices, 32 bits each: the id, the place and the text of each row; where each text begins;
	// tiles of 32 and of 16 rows, each a text and a first row of it.
	ids, places, texts, starts *buffer
	tiles                      map[int]*buffer
	seeds                      *buffer // 64 bits each; nil without
}

// cachedBatch returns a batch on the device. It uploads a batch that is not there yet.
func (be *Backend) cachedBatch(b compute.Batch) *batch {
	bs := be.batches
	bs.mu.Lock()
	defer bs.mu.Unlock()
	for i, known := range bs.last {
		if known.equals(b) {
			copy(bs.last[1:], bs.last[:i])
			bs.last[0] = known
			return known
		}
	}
	k := be.batch(b)
	bs.last = slices.Insert(bs.last, 0, k)
	bs.last = bs.last[:min(len(bs.last), rememberedBatches)]
	return k
}

func (k *batch) equals(b compute.Batch) bool {
	return slices.Equal(k.host.IDs, b.IDs) && slices.Equal(k.host.Start, b.Start) &&
		slices.Equal(k.host.Places, b.Places) && slices.Equal(k.host.Seeds, b.Seeds)
}

func (be *Backend) batch(b compute.Batch) *batch {
	host := compute.Batch{
		IDs: slices.Clone(b.IDs), Start: slices.Clone(b.Start), Places: slices.Clone(b.Places),
		Seeds: slices.Clone(b.Seeds),
	}
	texts := make([]int32, b.Rows())
	for i := range b.Texts() {
		for r := b.Start[i]; r < b.Start[i+1]; r++ {
			texts[r] = int32(i)
		}
	}
	k := &batch{
		host: host, ids: be.indices(host.IDs), places: be.indices(placesOf(host)), texts: be.indices(texts),
		starts: be.indices(host.Start), tiles: map[int]*buffer{},
	}
	for _, rows := range []int{tileRows, wideTileRows} {
		var tiles []int32
		for i := range b.Texts() {
			for first := int32(0); first < b.Start[i+1]-b.Start[i]; first += int32(rows) {
				tiles = append(tiles, int32(i), first)
			}
		}
		k.tiles[rows] = be.indices(tiles)
	}
	if host.Seeds != nil {
		words := make([]int32, 0, 2*len(host.Seeds))
		for _, s := range host.Seeds {
			words = append(words, int32(uint32(s)), int32(uint32(s>>32)))
		}
		k.seeds = be.indices(words)
	}
	return k
}

// indices uploads 32-bit numbers, which must not change any more.
func (be *Backend) indices(x []int32) *buffer {
	b := be.device.track(len(x))
	be.device.do(func(d *device) error {
		if err := d.allocate(b); err != nil {
			return err
		}
		return upload(d, devicePtr(b, 0), x)
	})
	return b
}
