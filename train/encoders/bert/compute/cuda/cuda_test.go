//go:build cuda

package cuda

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/computetest"
	"giantstream/train/encoders/bert/compute/cpu"
	"giantstream/train/encoders/bert/compute/cuda/emulation"
	"giantstream/train/numeric"
)

func opened(t *testing.T, o Options) *Backend {
	t.Helper()
	be, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { be.Close() })
	return be
}

// emulated skips a test that needs the emulation.
func emulated(t *testing.T) {
	t.Helper()
	if !emulation.Present() {
		t.Skip("the driver is that of a device; only the emulation (docs/CUDA.md) fails on request")
	}
}

func TestBackend(t *testing.T) {
	be := opened(t, Options{})
	t.Log("on", be.Name())
	if be.Emulated() != emulation.Present() {
		t.Errorf("Emulated is %v", be.Emulated())
	}
	computetest.Run(t, be)
}

// TestMath runs the suite in the modes that round operands.
func TestMath(t *testing.T) {
	for _, m := range []compute.Math{compute.TF32, compute.BF16} {
		t.Run(string(m), func(t *testing.T) {
			be := opened(t, Options{Math: m})
			if compute.MathOf(be) != m {
				t.Fatalf("the backend multiplies in %s", compute.MathOf(be))
			}
			computetest.Run(t, be)
		})
	}
}

// rounded is what a product in m makes of an operand.
func rounded(x []float32, m compute.Math) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		bits := math.Float32bits(v)
		switch m {
		case compute.TF32:
			bits = (bits + 1<<12) &^ (1<<13 - 1)
		case compute.BF16:
			bits = (bits + 1<<15 - 1 + bits>>16&1) &^ (1<<16 - 1)
		}
		out[i] = math.Float32frombits(bits)
	}
	return out
}

// TestMathRoundsOperandsOnly: products of every form and tile are those of rounded operands, summed in float32.
func TestMathRoundsOperandsOnly(t *testing.T) {
	for _, m := range []compute.Math{compute.TF32, compute.BF16} {
		be, reference := opened(t, Options{Math: m}), cpu.New()
		for _, s := range []struct{ rows, in, out int }{
			{1, 1, 1}, {260, 36, 264}, {129, 130, 257}, {300, 64, 140}, {64, 16, 64}, {127, 9, 515},
		} {
			x, w, dy := random(s.rows*s.in, 1), random(s.in*s.out, 2), random(s.rows*s.out, 3)
			run := func(be compute.Backend, x, w, dy []float32) []float32 {
				l := &compute.Linear{In: s.in, Out: s.out, Weight: be.Upload(w), Bias: be.Upload(random(s.out, 4))}
				g := &compute.Linear{In: s.in, Out: s.out, Weight: be.Upload(make([]float32, len(w))),
					Bias: be.Upload(make([]float32, s.out))}
				y, dx, ofX, ofY := be.New(s.rows*s.out), be.New(s.rows*s.in), be.Upload(x), be.Upload(dy)
				be.Linear(y, ofX, s.rows, l, compute.GELU)
				be.LinearBackward(dx, ofY, s.rows, l, false)
				be.LinearGradient(g, ofX, ofY, s.rows)
				return all(t, be, y, dx, g.Weight)
			}
			near(t, run(be, x, w, dy), run(reference, rounded(x, m), rounded(w, m), rounded(dy, m)), 2e-5)
		}
	}
}

func TestMathNeedsTensorCores(t *testing.T) {
	if _, err := Open(Options{Math: "fp8"}); err == nil || !strings.Contains(err.Error(), "float32, tf32, bf16") {
		t.Errorf("math fp8: %v", err)
	}
	emulated(t)
	emulation.SetCapability(7, 5)
	defer emulation.SetCapability(9, 0)
	for _, m := range []compute.Math{compute.TF32, compute.BF16} {
		be, err := Open(Options{Math: m})
		if err == nil {
			be.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "is 7.5, the math "+string(m)+" needs 8.0") {
			t.Errorf("math %s on a device of 7.5: %v", m, err)
		}
	}
}

// TestImages runs the suite with every image that the emulation can check.
func TestImages(t *testing.T) {
	emulated(t)
	defer emulation.SetCapability(9, 0)
	for _, c := range [][2]int{{7, 0}, {7, 5}, {8, 6}, {10, 0}} {
		emulation.SetCapability(c[0], c[1])
		be := opened(t, Options{})
		x := be.Upload(make([]float32, 100))
		everyKernel(be, x, c[0] >= tensorCapability)
		if err := be.Read(make([]float32, 1), x); err != nil {
			t.Errorf("%s: %v", be.Name(), err)
		}
		be.Close()
	}
}

// everyKernel loads each kernel: an image that is older than the sources is refused.
func everyKernel(be *Backend, x compute.Buffer, tensors bool) {
	be.device.do(func(d *device) error {
		names := []string{
			"embed_sum", "add_norm", "norm_backward", "column_sum", "scatter", "pool", "pool_backward", "activate",
			"activate_backward", "drop", "squares", "squares_total", "adamw",
		}
		for _, suffix := range []string{"32", "64", "128"} {
			names = append(names, "attend_"+suffix, "attend_backward_query_"+suffix, "attend_backward_key_"+suffix)
		}
		for _, form := range []string{"nn", "nt", "tn"} {
			names = append(names, "product_"+form+"_64", "product_"+form+"_128")
			if tensors {
				for _, m := range []compute.Math{compute.TF32, compute.BF16} {
					names = append(names, string(m)+"_product_"+form+"_64", string(m)+"_product_"+form+"_128")
				}
			}
		}
		for _, name := range names {
			if _, err := d.module.Function(name); err != nil {
				return d.failed(name, err)
			}
		}
		return nil
	})
}

func random(n int, seed uint64) []float32 {
	r := numeric.NewRand(seed)
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(2*r.Float64() - 1)
	}
	return x
}

// TestSizes compares with the CPU what the suite's sizes leave out: products with large tiles and
// with sizes that are multiples of four or not, and heads of every width that kernels are made for.
func TestSizes(t *testing.T) {
	be, reference := opened(t, Options{}), cpu.New()
	for _, s := range []struct{ rows, in, out int }{
		{260, 36, 264}, {129, 130, 257}, {300, 64, 140}, {64, 16, 64}, {127, 9, 515},
	} {
		run := func(be compute.Backend) []float32 {
			l := &compute.Linear{
				In: s.in, Out: s.out, Weight: be.Upload(random(s.in*s.out, 1)), Bias: be.Upload(random(s.out, 2)),
			}
			g := &compute.Linear{
				In: s.in, Out: s.out, Weight: be.Upload(random(s.in*s.out, 3)), Bias: be.Upload(random(s.out, 4)),
			}
			x, y := be.Upload(random(s.rows*s.in, 5)), be.New(s.rows*s.out)
			be.Linear(y, x, s.rows, l, compute.GELU)
			dx := be.New(s.rows * s.in)
			be.LinearBackward(dx, y, s.rows, l, false)
			be.LinearGradient(g, x, y, s.rows)
			return all(t, be, y, dx, g.Weight, g.Bias)
		}
		near(t, run(be), run(reference), 1e-4)
	}
	b := compute.Batch{Start: []int32{0, 33, 34, 130}, IDs: make([]int32, 130), Seeds: []uint64{1, 2, 3}}
	for _, width := range []int{8, 32, 33, 64, 100, 128} {
		const heads = 2
		run := func(be compute.Backend) []float32 {
			qkv, dy := be.Upload(random(130*3*heads*width, 1)), be.Upload(random(130*heads*width, 2))
			y, dqkv := be.New(130*heads*width), be.New(130*3*heads*width)
			drop := compute.Dropout{Rate: 0.1, Site: 4}
			be.Attend(y, qkv, b, heads, width, drop)
			be.AttendBackward(dqkv, dy, qkv, b, heads, width, drop)
			return all(t, be, y, dqkv)
		}
		near(t, run(be), run(reference), 1e-4)
	}
}

func all(t *testing.T, be compute.Backend, buffers ...compute.Buffer) []float32 {
	t.Helper()
	var out []float32
	for _, b := range buffers {
		x := make([]float32, b.Len())
		if err := be.Read(x, b); err != nil {
			t.Fatal(err)
		}
		out = append(out, x...)
	}
	return out
}

func near(t *testing.T, got, want []float32, tolerance float64) {
	t.Helper()
	for i, w := range want {
		if d := math.Abs(float64(got[i] - w)); !(d <= tolerance*max(1, math.Abs(float64(w)))) {
			t.Fatalf("number %d is %v, %v on the CPU", i, got[i], w)
		}
	}
}

// TestTileDoesNotChangeBits: large and small tiles of products give the same bits.
func TestTileDoesNotChangeBits(t *testing.T) {
	for _, m := range []compute.Math{compute.Float32, compute.TF32, compute.BF16} {
		be := opened(t, Options{Math: m})
		const rows, in, out = 140, 50, 130
		x, w := be.Upload(random(rows*in, 1)), be.Upload(random(in*out, 2))
		run := func(processors int) []float32 {
			y := be.New(rows * out)
			be.device.do(func(d *device) error {
				before := d.processors
				defer func() { d.processors = before }()
				d.processors = processors
				return d.product("nn", y, x, w, nil, rows, out, in, false, false)
			})
			return all(t, be, y)
		}
		if !slices.Equal(run(1), run(1000)) {
			t.Errorf("%s: tiles of 128 and of 64 give other bits", m)
		}
	}
}

func TestWidestHead(t *testing.T) {
	be := opened(t, Options{})
	b := compute.Batch{Start: []int32{0, 1}, IDs: []int32{0}}
	x := be.Upload(make([]float32, 3*widestHead+3))
	be.Attend(x, x, b, 1, widestHead+1, compute.Dropout{})
	err := be.Read(make([]float32, 1), x)
	if err == nil || !strings.Contains(err.Error(), "129 numbers, the kernels have room for 128") {
		t.Errorf("a head that is too wide: %v", err)
	}
}

func TestNoSuchDevice(t *testing.T) {
	for _, o := range []Options{{Device: 1000}, {Device: -1}, {Memory: -1}} {
		if be, err := Open(o); err == nil {
			be.Close()
			t.Errorf("%+v can be opened", o)
		}
	}
}

func TestLimitOfMemory(t *testing.T) {
	be := opened(t, Options{Memory: 1 << 20})
	x := be.Upload(make([]float32, 1<<17)) // half of it
	if err := be.Read(make([]float32, 1), x); err != nil {
		t.Fatal(err)
	}
	y := be.New(1 << 18)
	err := be.Read(make([]float32, 1), y)
	if !errors.Is(err, ErrMemory) || errors.Is(err, ErrLost) {
		t.Errorf("beyond the limit: %v", err)
	}
	if err == nil || !strings.Contains(err.Error(), "1048576") {
		t.Errorf("the error does not tell the limit: %v", err)
	}
	// The first error stays.
	if again := be.Read(make([]float32, 1), x); !errors.Is(again, ErrMemory) {
		t.Errorf("after it: %v", again)
	}
	runtime.KeepAlive(x)
}

// TestGarbageIsFreed: buffers that nothing refers to make room, many times over the limit.
func TestGarbageIsFreed(t *testing.T) {
	be := opened(t, Options{Memory: 1 << 20})
	for i := range 200 {
		x := be.New(1<<15 + i) // other sizes: the pool cannot hand out what it has
		be.Zero(x)
		if err := be.Read(make([]float32, 1), x); err != nil {
			t.Fatalf("buffer %d: %v", i, err)
		}
	}
}

// TestFree: what is freed makes room at once, for buffers of the same size without asking the driver, though the
// buffers themselves are not garbage.
func TestFree(t *testing.T) {
	be := opened(t, Options{Memory: 1 << 20})
	used := func() (bytes int64) {
		t.Helper()
		if err := be.device.wait(func(d *device) error { bytes = d.pool.used; return nil }); err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	var held []compute.Buffer
	for _, n := range []int{1 << 17, 1<<17 + 1} { // each takes more than half of the limit, with its neighbour's size
		var first int64
		for i := range 20 {
			x, y := be.Upload(random(n, 1)), be.New(n/2)
			held = append(held, x, y)
			be.Activate(y, x, n/2, compute.Identity)
			compute.Free(be, x, y)
			compute.Free(be, x) // changes nothing
			if i == 0 {
				first = used()
			}
		}
		if last := used(); last != first || last > 1<<20 {
			t.Errorf("%d numbers: %d bytes are taken after the first buffers, %d after the last", n, first, last)
		}
	}
	x := be.Upload(random(100, 2))
	compute.Free(be, x)
	y := be.Upload(random(100, 3)) // in the memory of x
	if got := all(t, be, y); !slices.Equal(got, random(100, 3)) {
		t.Error("memory that was freed is not written anew")
	}
	be.Close()
	compute.Free(be, y)
	runtime.KeepAlive(held)
}

// TestFreeKeepsTheOrder: goroutines free buffers right after the operations that use them.
func TestFreeKeepsTheOrder(t *testing.T) {
	be := opened(t, Options{Memory: 1 << 20})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			src := random(1000, uint64(i))
			for range 50 {
				x, y := be.Upload(src), be.New(1000)
				be.Activate(y, x, 1000, compute.Identity)
				compute.Free(be, x)
				got := make([]float32, 1000)
				if err := be.Read(got, y); err != nil {
					t.Error(err)
					return
				}
				compute.Free(be, y)
				if !slices.Equal(got, src) {
					t.Errorf("goroutine %d: another buffer's numbers", i)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestDeviceWithoutMemory(t *testing.T) {
	emulated(t)
	emulation.SetMemory(1 << 20)
	defer emulation.SetMemory(512 << 20)
	be := opened(t, Options{Memory: 1 << 30})
	x := be.New(1 << 20)
	if err := be.Read(make([]float32, 1), x); !errors.Is(err, ErrMemory) {
		t.Errorf("a device that is full: %v", err)
	}
}

// TestFailures makes calls of the driver fail, one in each run.
func TestFailures(t *testing.T) {
	emulated(t)
	for _, f := range []struct {
		function string
		n, code  int
		want     error
	}{
		{"cuLaunchKernel", 1, emulation.LaunchFailed, ErrLost},
		{"cuLaunchKernel", 2, emulation.ECCUncorrectable, ErrLost},
		{"cuMemcpyHtoDAsync_v2", 2, emulation.IllegalAddress, ErrLost},
		{"cuMemcpyDtoHAsync_v2", 1, emulation.ECCUncorrectable, ErrLost},
		{"cuStreamSynchronize", 1, emulation.LaunchFailed, ErrLost},
		{"cuModuleGetFunction", 1, 500, ErrLost},
		{"cuMemAlloc_v2", 1, emulation.IllegalAddress, ErrLost},
		{"cuLaunchKernel", 1, emulation.OutOfMemory, ErrMemory},
	} {
		be := opened(t, Options{})
		emulation.Fail(f.function, f.n, f.code)
		x := be.Upload(random(100, 1))
		y := be.Upload(random(100, 2))
		be.Activate(y, x, 100, compute.GELU)
		be.Activate(y, y, 100, compute.GELU)
		out := make([]float32, 100)
		err := be.Read(out, y)
		if !errors.Is(err, f.want) {
			t.Errorf("%s: %v", f.function, err)
		}
		if !slices.Equal(out, make([]float32, 100)) && f.function != "cuStreamSynchronize" {
			t.Errorf("%s: Read wrote something", f.function)
		}
		if again := be.Read(out, x); !errors.Is(again, f.want) {
			t.Errorf("%s, again: %v", f.function, again)
		}
		if err := be.Close(); err != nil {
			t.Errorf("%s: Close tells what Read has told: %v", f.function, err)
		}
		if n := emulation.Used(); n != 0 {
			t.Errorf("%s: %d bytes are left behind", f.function, n)
		}
	}
}

// TestOpenFails makes calls of Open fail: nothing is left behind.
func TestOpenFails(t *testing.T) {
	emulated(t)
	for _, function := range []string{"cuStreamCreate", "cuModuleLoadData", "cuMemGetInfo_v2"} {
		first := opened(t, Options{}) // keeps the context, in which calls can be made to fail
		emulation.Fail(function, 1, 3)
		if be, err := Open(Options{}); err == nil {
			be.Close()
			t.Errorf("%s fails and Open does not", function)
		}
		first.Close()
		if n := emulation.Used(); n != 0 {
			t.Errorf("%s: %d bytes are left behind", function, n)
		}
	}
}

func TestCloseTellsAnErrorThatNobodyRead(t *testing.T) {
	emulated(t)
	be := opened(t, Options{})
	emulation.Fail("cuLaunchKernel", 1, emulation.LaunchFailed)
	x := be.Upload(random(10, 1))
	be.Activate(x, x, 10, compute.Tanh)
	if err := be.Close(); !errors.Is(err, ErrLost) {
		t.Errorf("Close: %v", err)
	}
}

func TestAfterClose(t *testing.T) {
	be := opened(t, Options{})
	x := be.Upload([]float32{1})
	if err := be.Close(); err != nil {
		t.Fatal(err)
	}
	be.Zero(x)
	be.Write(be.New(1), []float32{2})
	if err := be.Read(make([]float32, 1), x); !errors.Is(err, ErrClosed) {
		t.Errorf("Read after Close: %v", err)
	}
	if err := be.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}

// TestTogether runs operations of several goroutines, each on buffers of its own.
func TestTogether(t *testing.T) {
	be := opened(t, Options{})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			b := compute.Batch{Start: []int32{0, int32(i + 1)}, IDs: make([]int32, i+1), Seeds: []uint64{uint64(i)}}
			n := (i + 1) * 8
			src := random(n, uint64(i))
			want := make([]float32, n)
			drop := compute.Dropout{Rate: 0.5, Site: 1}
			drop.DroppedFor(uint64(i)).Apply(want, src, 0)
			for range 20 {
				x := be.New(n)
				be.Write(x, src)
				be.Drop(x, x, b, 8, drop)
				got := make([]float32, n)
				if err := be.Read(got, x); err != nil {
					t.Error(err)
					return
				}
				if !slices.Equal(got, want) {
					t.Errorf("goroutine %d: %v, want %v", i, got, want)
				}
			}
		})
	}
	wg.Wait()
}

// TestWriteTakesACopy: the caller may change what it wrote as soon as Write returns.
func TestWriteTakesACopy(t *testing.T) {
	be := opened(t, Options{})
	x, src := be.New(3), []float32{1, 2, 3}
	be.Write(x, src)
	clear(src)
	if got := all(t, be, x); !slices.Equal(got, []float32{1, 2, 3}) {
		t.Errorf("%v was written", got)
	}
}
