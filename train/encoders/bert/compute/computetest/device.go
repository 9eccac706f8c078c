package computetest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"giantstream/train/encoders/bert/compute"
)

// DeviceOptions say how a Device behaves.
type DeviceOptions struct {
	// Memory is how many bytes its buffers may take together, 0 for any number.
	Memory int64
	// LostAfter is the number of operations after which the device is lost, 0 for never.
	LostAfter int
	// BatchTokens is what it answers to compute.Batcher, 0 for the CPU's 1024.
	BatchTokens int
	// Math is how it says that it multiplies. It multiplies like the backend that it is made of.
	Math compute.Math
}

var (
	// ErrMemory: the buffers of a Device would take more than its memory.
	ErrMemory = errors.New("emulated device: out of memory")
	// ErrLost: Lose was called, or the operation that DeviceOptions name has come.
	ErrLost = errors.New("emulated device: the device is lost")
)

// Device makes a device of a backend, and computes the same bits. Like a GPU it has memory of its
// own: operations run later, in order, on a goroutine of the device, and buffers hold NaN until they
// are written and after they are freed. It notes what a device does not forgive, such as a buffer
// used after Free; Check reports that.
type Device struct {
	*device
	inner compute.Backend
}

// device is what a Device shares with what Spread makes of it.
type device struct {
	options DeviceOptions
	queue   chan func()
	done    chan struct{} // closed when the queue is empty and closed

	mu         sync.Mutex
	closed     bool
	failed     error // the first failure
	operations int
	usage      Usage
	faults     []string
	marks      map[*compute.Mark]compute.Batch
}

// Usage is what was asked of a Device.
type Usage struct {
	Buffers int   // that are there
	Bytes   int64 // that they take
	Most    int64 // bytes at any time
	Made    int   // buffers, ever
	Batches int   // that were copied to the device: one for each mark
}

// NewDevice makes a device of a backend. It runs until it is closed.
func NewDevice(inner compute.Backend, o DeviceOptions) *Device {
	d := &Device{&device{options: o, queue: make(chan func(), 64), done: make(chan struct{}),
		marks: map[*compute.Mark]compute.Batch{}}, inner}
	go func() {
		defer close(d.done)
		for operation := range d.queue {
			operation()
		}
	}()
	return d
}

// Name returns "emulated device".
func (d *Device) Name() string { return "emulated device" }

// Emulated returns true.
func (d *Device) Emulated() bool { return true }

// Math implements compute.Multiplier.
func (d *Device) Math() compute.Math { return cmp.Or(d.options.Math, compute.Float32) }

// BatchTokens implements compute.Batcher.
func (d *Device) BatchTokens(bytes int64) int {
	if bytes <= 0 {
		d.fault("a batch of tokens of %d bytes", bytes)
	}
	if d.options.BatchTokens > 0 {
		return d.options.BatchTokens
	}
	return 1024
}

// Close ends the device after the operations that were called.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.faults = append(d.faults, "closed twice")
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	close(d.queue)
	d.mu.Unlock()
	<-d.done
	return nil
}

// Lose loses the device now.
func (d *Device) Lose() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed == nil {
		d.failed = ErrLost
	}
}

// Usage returns what was asked of the device so far.
func (d *Device) Usage() Usage {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.usage
}

// Operations returns how many operations were called so far.
func (d *Device) Operations() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.operations
}

// Faults returns what a device would not have forgiven.
func (d *Device) Faults() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.faults)
}

// Check fails a test if there were faults.
func (d *Device) Check(t *testing.T) {
	t.Helper()
	for _, f := range d.Faults() {
		t.Error("emulated device: ", f)
	}
}

func (d *Device) fault(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = append(d.faults, fmt.Sprintf(format, args...))
}

// deviceBuffer is a buffer of a Device.
type deviceBuffer struct {
	inner  compute.Buffer // nil: there was no memory
	device *device
	n      int
	freed  bool
}

func (m *deviceBuffer) Len() int { return m.n }

// bytes are those that the buffer takes.
func (m *deviceBuffer) bytes() int64 {
	if m.inner == nil {
		return 0
	}
	return 4 * int64(m.n)
}

// run has an operation run later, and returns whether it will: not if the device has failed or is
// misused. arguments are the buffers that the operation uses.
func (d *Device) run(operation func(), arguments ...compute.Buffer) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.operations++
	if d.options.LostAfter > 0 && d.operations > d.options.LostAfter && d.failed == nil {
		d.failed = fmt.Errorf("%w after %d operations", ErrLost, d.options.LostAfter)
	}
	usable := true
	for _, b := range arguments {
		if b == nil {
			continue
		}
		switch m, ok := b.(*deviceBuffer); {
		case !ok || m.device != d.device:
			d.faults, usable = append(d.faults, "a buffer of another backend is used"), false
		case m.freed:
			d.faults, usable = append(d.faults, "a buffer is used after Free"), false
		}
	}
	if d.closed {
		d.faults, usable = append(d.faults, "an operation after Close"), false
	}
	if !usable || d.failed != nil {
		return false
	}
	d.queue <- operation
	return true
}

// inner returns the inner backend's buffer.
func inner(b compute.Buffer) compute.Buffer {
	if m, ok := b.(*deviceBuffer); ok {
		return m.inner
	}
	return b // nil, or a fault that run has noted
}

// made makes a buffer of n numbers and notes it.
func (d *Device) made(n int) *deviceBuffer {
	d.mu.Lock()
	defer d.mu.Unlock()
	bytes := 4 * int64(n)
	if full := d.options.Memory > 0 && d.usage.Bytes+bytes > d.options.Memory; full && d.failed == nil {
		d.failed = fmt.Errorf("%w: %d bytes of %d are taken, and %d are asked for", ErrMemory, d.usage.Bytes,
			d.options.Memory, bytes)
	}
	m := &deviceBuffer{device: d.device, n: n}
	if d.failed == nil {
		m.inner = d.inner.New(n)
	}
	d.usage.Made++
	d.usage.Buffers++
	d.usage.Bytes += m.bytes()
	d.usage.Most = max(d.usage.Most, d.usage.Bytes)
	return m
}

func nans(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.NaN())
	}
	return x
}

// New implements compute.Backend.
func (d *Device) New(n int) compute.Buffer {
	b := d.made(n)
	d.run(func() { d.inner.Write(b.inner, nans(n)) }, b)
	return b
}

// Upload implements compute.Backend.
func (d *Device) Upload(data []float32) compute.Buffer {
	data = slices.Clone(data)
	b := d.made(len(data))
	d.run(func() { d.inner.Write(b.inner, data) }, b)
	return b
}

// Free implements compute.Freer.
func (d *Device) Free(b compute.Buffer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, ok := b.(*deviceBuffer)
	switch {
	case !ok || m.device != d.device:
		d.faults = append(d.faults, "a buffer of another backend is freed")
	case m.freed:
		d.faults = append(d.faults, "a buffer is freed twice")
	default:
		m.freed = true
		d.usage.Buffers--
		d.usage.Bytes -= m.bytes()
		if !d.closed && m.inner != nil {
			d.queue <- func() { d.inner.Write(m.inner, nans(m.n)) }
		}
	}
}

// Write implements compute.Backend.
func (d *Device) Write(dst compute.Buffer, src []float32) {
	src = slices.Clone(src)
	d.run(func() { d.inner.Write(inner(dst), src) }, dst)
}

// Read implements compute.Backend.
func (d *Device) Read(dst []float32, src compute.Buffer) error {
	result := make(chan error, 1)
	if d.run(func() { result <- d.inner.Read(dst, inner(src)) }, src) {
		return <-result
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed != nil {
		return d.failed
	}
	return errors.New("emulated device: it was misused, see Check")
}

// Spread implements compute.Backend.
func (d *Device) Spread(workers int) compute.Backend {
	return &Device{d.device, d.inner.Spread(workers)}
}

// copied returns the device's own copy of a batch.
func (d *Device) copied(b compute.Batch) compute.Batch {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.marks[b.Mark]; ok && b.Mark != nil {
		if !slices.Equal(known.IDs, b.IDs) || !slices.Equal(known.Start, b.Start) ||
			!slices.Equal(known.Places, b.Places) || !slices.Equal(known.Seeds, b.Seeds) {
			d.faults = append(d.faults, "two batches with the same mark differ")
		}
		return known
	}
	d.usage.Batches++
	c := compute.Batch{IDs: slices.Clone(b.IDs), Start: slices.Clone(b.Start), Places: slices.Clone(b.Places),
		Seeds: slices.Clone(b.Seeds)}
	if b.Mark != nil {
		d.marks[b.Mark] = c
	}
	return c
}

func norm(n *compute.Norm) *compute.Norm {
	return &compute.Norm{Width: n.Width, Gain: inner(n.Gain), Bias: inner(n.Bias), Epsilon: n.Epsilon}
}

func layer(l *compute.Linear) *compute.Linear {
	return &compute.Linear{In: l.In, Out: l.Out, Weight: inner(l.Weight), Bias: inner(l.Bias)}
}

func embedding(e *compute.Embedding) *compute.Embedding {
	return &compute.Embedding{Words: inner(e.Words), Positions: inner(e.Positions), Types: inner(e.Types),
		Norm: *norm(&e.Norm)}
}

// tables are the buffers of an embedding.
func tables(e *compute.Embedding) []compute.Buffer {
	return []compute.Buffer{e.Words, e.Positions, e.Types, e.Norm.Gain, e.Norm.Bias}
}

// Embed implements compute.Forward.
func (d *Device) Embed(dst compute.Buffer, b compute.Batch, e *compute.Embedding) {
	own, all := embedding(e), append(tables(e), dst)
	b = d.copied(b)
	d.run(func() { d.inner.Embed(inner(dst), b, own) }, all...)
}

// Linear implements compute.Forward.
func (d *Device) Linear(dst, x compute.Buffer, rows int, l *compute.Linear, a compute.Activation) {
	own := layer(l)
	d.run(func() { d.inner.Linear(inner(dst), inner(x), rows, own, a) }, dst, x, l.Weight, l.Bias)
}

// Activate implements compute.Forward.
func (d *Device) Activate(dst, x compute.Buffer, n int, a compute.Activation) {
	d.run(func() { d.inner.Activate(inner(dst), inner(x), n, a) }, dst, x)
}

// Attend implements compute.Forward.
func (d *Device) Attend(dst, qkv compute.Buffer, b compute.Batch, heads, width int, drop compute.Dropout) {
	b = d.copied(b)
	d.run(func() { d.inner.Attend(inner(dst), inner(qkv), b, heads, width, drop) }, dst, qkv)
}

// Drop implements compute.Forward.
func (d *Device) Drop(dst, x compute.Buffer, b compute.Batch, width int, drop compute.Dropout) {
	b = d.copied(b)
	d.run(func() { d.inner.Drop(inner(dst), inner(x), b, width, drop) }, dst, x)
}

// AddNorm implements compute.Forward.
func (d *Device) AddNorm(dst, x, residual compute.Buffer, rows int, n *compute.Norm) {
	own := norm(n)
	d.run(func() { d.inner.AddNorm(inner(dst), inner(x), inner(residual), rows, own) },
		dst, x, residual, n.Gain, n.Bias)
}

// Pool implements compute.Forward.
func (d *Device) Pool(dst, x compute.Buffer, b compute.Batch, width int, p compute.Pooling) {
	b = d.copied(b)
	d.run(func() { d.inner.Pool(inner(dst), inner(x), b, width, p) }, dst, x)
}

// EmbedBackward implements compute.Backward.
func (d *Device) EmbedBackward(g *compute.Embedding, dy compute.Buffer, b compute.Batch, e *compute.Embedding) {
	all := slices.Concat(tables(g), tables(e), []compute.Buffer{dy})
	own, slope := embedding(e), embedding(g)
	b = d.copied(b)
	d.run(func() { d.inner.EmbedBackward(slope, inner(dy), b, own) }, all...)
}

// LinearBackward implements compute.Backward.
func (d *Device) LinearBackward(dx, dy compute.Buffer, rows int, l *compute.Linear, add bool) {
	own := layer(l)
	d.run(func() { d.inner.LinearBackward(inner(dx), inner(dy), rows, own, add) }, dx, dy, l.Weight, l.Bias)
}

// LinearGradient implements compute.Backward.
func (d *Device) LinearGradient(g *compute.Linear, x, dy compute.Buffer, rows int) {
	own := layer(g)
	d.run(func() { d.inner.LinearGradient(own, inner(x), inner(dy), rows) }, g.Weight, g.Bias, x, dy)
}

// ActivateBackward implements compute.Backward.
func (d *Device) ActivateBackward(dx, dy, x compute.Buffer, n int, a compute.Activation) {
	d.run(func() { d.inner.ActivateBackward(inner(dx), inner(dy), inner(x), n, a) }, dx, dy, x)
}

// AttendBackward implements compute.Backward.
func (d *Device) AttendBackward(dqkv, dy, qkv compute.Buffer, b compute.Batch, heads, width int,
	drop compute.Dropout) {
	b = d.copied(b)
	d.run(func() { d.inner.AttendBackward(inner(dqkv), inner(dy), inner(qkv), b, heads, width, drop) }, dqkv, dy, qkv)
}

// AddNormBackward implements compute.Backward.
func (d *Device) AddNormBackward(g *compute.Norm, dx, dy, x, residual compute.Buffer, rows int, n *compute.Norm) {
	slope, own := norm(g), norm(n)
	d.run(func() { d.inner.AddNormBackward(slope, inner(dx), inner(dy), inner(x), inner(residual), rows, own) },
		g.Gain, g.Bias, dx, dy, x, residual, n.Gain, n.Bias)
}

// PoolBackward implements compute.Backward.
func (d *Device) PoolBackward(dx, dy compute.Buffer, b compute.Batch, width int, p compute.Pooling) {
	b = d.copied(b)
	d.run(func() { d.inner.PoolBackward(inner(dx), inner(dy), b, width, p) }, dx, dy)
}

// Zero implements compute.Optimizer.
func (d *Device) Zero(x compute.Buffer) { d.run(func() { d.inner.Zero(inner(x)) }, x) }

// Squares implements compute.Optimizer.
func (d *Device) Squares(dst compute.Buffer, i int, x compute.Buffer) {
	d.run(func() { d.inner.Squares(inner(dst), i, inner(x)) }, dst, x)
}

// AdamW implements compute.Optimizer.
func (d *Device) AdamW(w, mean, square, g, squares compute.Buffer, s *compute.Step) {
	own := *s
	d.run(func() { d.inner.AdamW(inner(w), inner(mean), inner(square), inner(g), inner(squares), &own) }, w, mean,
		square, g, squares)
}
