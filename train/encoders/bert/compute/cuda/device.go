//go:build cuda

package cuda

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"gorgonia.org/cu"

	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/cuda/kernels"
)

// device is an opened device. One goroutine calls the driver; fields below work are its own.
type device struct {
	number int
	name   string
	math   compute.Math
	work   chan func(*device)
	done   chan struct{} // closed when the goroutine has ended

	pool       pool
	room       *buffer // for scratch
	gpu        cu.Device
	processors int // multiprocessors
	stream     cu.Stream
	module     cu.Module
	functions  map[string]cu.Function
	pending    []any // what copies under way read
	bytes      int   // of pending
	err        error // the first
	told       bool  // Read has returned err
	closing    bool
	closed     error
	closeOnce  sync.Once
}

// queued is how many operations may wait for the device's goroutine.
const queued = 256

func open(o Options) (*device, error) {
	if o.Memory < 0 {
		return nil, fmt.Errorf("cuda: a memory limit of %d bytes, it must not be negative", o.Memory)
	}
	if err := o.Math.Validate(); err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	d := &device{
		number: o.Device, math: cmp.Or(o.Math, compute.Float32),
		work: make(chan func(*device), queued), done: make(chan struct{}),
		functions: map[string]cu.Function{},
	}
	opened := make(chan error)
	go d.run(o, opened)
	if err := <-opened; err != nil {
		return nil, err
	}
	return d, nil
}

// run is the device's goroutine.
func (d *device) run(o Options, opened chan<- error) {
	defer close(d.done)
	// The thread ends with the goroutine, and the context is current on no other.
	runtime.LockOSThread()
	if err := d.start(o); err != nil {
		opened <- err
		return
	}
	opened <- nil
	for !d.closing {
		(<-d.work)(d)
	}
	d.closed = d.stop()
}

// tensorCapability is the least major compute capability with TF32 and bfloat16.
const tensorCapability = 8

// start makes the device ready.
func (d *device) start(o Options) error {
	count, err := cu.NumDevices()
	if err != nil {
		return fmt.Errorf("cuda: counting devices: %w", err)
	}
	if o.Device < 0 || o.Device >= count {
		return fmt.Errorf("cuda: there is no device %d; the driver has %d (CUDA_VISIBLE_DEVICES hides some)", o.Device,
			count)
	}
	if d.gpu, err = cu.GetDevice(o.Device); err != nil {
		return fmt.Errorf("cuda: device %d: %w", o.Device, err)
	}
	if d.name, err = d.gpu.Name(); err != nil {
		return fmt.Errorf("cuda: the name of device %d: %w", o.Device, err)
	}
	major, minor, err := d.gpu.ComputeCapability()
	if err != nil {
		return fmt.Errorf("cuda: the compute capability of device %d (%s): %w", o.Device, d.name, err)
	}
	if d.math != compute.Float32 && major < tensorCapability {
		return fmt.Errorf("cuda: device %d (%s): its compute capability is %d.%d, the math %s needs %d.0 (A100, L4, "+
			"H100, …): use float32", o.Device, d.name, major, minor, d.math, tensorCapability)
	}
	image, err := kernels.Image(major, minor)
	if err != nil {
		return fmt.Errorf("cuda: device %d (%s): %w", o.Device, d.name, err)
	}
	if d.processors, err = d.gpu.Attribute(cu.MultiprocessorCount); err != nil {
		return fmt.Errorf("cuda: the multiprocessors of device %d (%s): %w", o.Device, d.name, err)
	}
	context, err := d.gpu.RetainPrimaryCtx()
	if err != nil {
		return fmt.Errorf("cuda: opening device %d (%s): %w; does another process have it to itself?", o.Device, d.name,
			err)
	}
	if err := d.prepare(o, context, image); err != nil {
		return errors.Join(err, d.gpu.ReleasePrimaryCtx())
	}
	return nil
}

// prepare makes a retained context ready.
func (d *device) prepare(o Options, context cu.CUContext, image string) error {
	if err := cu.SetCurrentContext(context); err != nil {
		return fmt.Errorf("cuda: device %d (%s): %w", d.number, d.name, err)
	}
	var err error
	if d.stream, err = cu.MakeStream(cu.NonBlocking); err != nil {
		return fmt.Errorf("cuda: making a stream on device %d (%s): %w", d.number, d.name, err)
	}
	if d.module, err = cu.LoadData(image); err != nil {
		return fmt.Errorf("cuda: loading the kernels on device %d (%s): %w; is the driver older than CUDA 11.8?",
			d.number, d.name, err)
	}
	d.pool.limit, d.pool.all, d.pool.free = o.Memory, map[cu.DevicePtr]int{}, map[int][]cu.DevicePtr{}
	if d.pool.limit == 0 {
		free, _, err := cu.MemInfo()
		if err != nil {
			return fmt.Errorf("cuda: asking device %d (%s) for its free memory: %w", d.number, d.name, err)
		}
		d.pool.limit = free / 10 * 9
	}
	return nil
}

// stop gives everything back. After an error calls fail again, which tells nothing new.
func (d *device) stop() error {
	if d.err == nil {
		d.err = d.failed("waiting", d.stream.Synchronize())
	}
	for at := range d.pool.all {
		d.pool.giveBack(at)
	}
	_ = d.stream.Destroy()
	_ = d.module.Unload()
	if err := d.gpu.ReleasePrimaryCtx(); err != nil && d.err == nil {
		d.err = d.failed("closing", err)
	}
	if d.told {
		return nil
	}
	return d.err
}

func (d *device) close() error {
	d.closeOnce.Do(func() {
		d.work <- func(d *device) { d.closing = true }
	})
	<-d.done
	return d.closed
}

// queue hands work to the device's goroutine; after close it is dropped.
func (d *device) queue(work func(*device)) {
	select {
	case d.work <- work:
	case <-d.done:
	}
}

// do queues an operation.
func (d *device) do(operation func(*device) error) {
	d.queue(func(d *device) {
		if d.err == nil {
			d.err = operation(d)
		}
	})
}

// wait runs an operation and returns the first error so far.
func (d *device) wait(operation func(*device) error) error {
	result := make(chan error, 1)
	d.queue(func(d *device) {
		if d.err == nil {
			d.err = operation(d)
		}
		d.told = d.err != nil
		result <- d.err
	})
	select {
	case err := <-result:
		return err
	case <-d.done:
	}
	select {
	case err := <-result: // it came before Close
		return err
	default:
		return ErrClosed
	}
}

// failed names what the driver was doing when it returned err, nil for nil. No such error is one of
// the caller's data, so the device is given up.
func (d *device) failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, cu.OutOfMemory) {
		return d.full(doing, 0)
	}
	return fmt.Errorf("cuda: %w: %s on device %d (%s): %w; what the driver says is in the system's log (NVRM, Xid)",
		ErrLost, doing, d.number, d.name, err)
}

// full is the error of a device without room.
func (d *device) full(doing string, bytes int) error {
	what := doing
	if bytes > 0 {
		what = fmt.Sprintf("%s %d bytes", doing, bytes)
	}
	return fmt.Errorf("cuda: %w: %s on device %d (%s), where %d bytes are in use of a limit of %d", ErrMemory, what,
		d.number, d.name, d.pool.used, d.pool.limit)
}

// keptBytes is how much of the host's memory copies under way may hold before they are waited for.
const keptBytes = 64 << 20

// upload copies data, which must not change any more, to the device.
func upload[T float32 | int32](d *device, to cu.DevicePtr, data []T) error {
	if len(data) == 0 {
		return nil
	}
	bytes := 4 * len(data)
	if err := cu.MemcpyHtoDAsync(to, unsafe.Pointer(&data[0]), int64(bytes), d.stream); err != nil {
		return d.failed("uploading", err)
	}
	// The driver stages what it copies from such memory, but does not promise to have done so.
	d.pending = append(d.pending, data)
	if d.bytes += bytes; d.bytes > keptBytes {
		return d.synchronize()
	}
	return nil
}

// synchronize waits for all that was begun.
func (d *device) synchronize() error {
	err := d.failed("waiting", d.stream.Synchronize())
	d.pending, d.bytes = slices.Delete(d.pending, 0, len(d.pending)), 0
	return err
}

func (d *device) download(dst []float32, from cu.DevicePtr) error {
	if len(dst) > 0 {
		if err := cu.MemcpyDtoHAsync(unsafe.Pointer(&dst[0]), from, int64(4*len(dst)), d.stream); err != nil {
			return d.failed("reading", err)
		}
	}
	return d.synchronize()
}

// grid is how many blocks a kernel has.
type grid struct{ x, y int }

// launch begins a kernel. Arguments are int (32 bits), uint64, float32, float64, cu.DevicePtr and
// compute.Buffer's *buffer, nil for a null pointer.
func (d *device) launch(kernel string, g grid, threads int, arguments ...any) error {
	if g.x == 0 || g.y == 0 {
		return nil // there is nothing to do
	}
	f, ok := d.functions[kernel]
	if !ok {
		var err error
		if f, err = d.module.Function(kernel); err != nil {
			return d.failed("finding the kernel "+kernel, err)
		}
		d.functions[kernel] = f
	}
	// gorgonia.org/cu copies eight bytes per argument, whatever its size.
	boxes := make([]uint64, len(arguments))
	pointers := make([]unsafe.Pointer, len(arguments))
	for i, a := range arguments {
		switch a := a.(type) {
		case int:
			boxes[i] = uint64(uint32(int32(a)))
		case uint64:
			boxes[i] = a
		case float32:
			boxes[i] = uint64(math.Float32bits(a))
		case float64:
			boxes[i] = math.Float64bits(a)
		case cu.DevicePtr:
			boxes[i] = uint64(a)
		case *buffer:
			if a != nil {
				boxes[i] = uint64(a.m.at)
			}
		default:
			panic(fmt.Sprintf("cuda: an argument of type %T for kernel %s", a, kernel))
		}
		pointers[i] = unsafe.Pointer(&boxes[i])
	}
	return d.failed("beginning "+kernel, f.Launch(g.x, g.y, 1, threads, 1, 1, 0, d.stream, pointers))
}
