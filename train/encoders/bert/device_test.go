package bert

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/computetest"
	"giantstream/train/encoders/bert/compute/cpu"
	"giantstream/train/encoders/bert/wordpiece"
)

// device opens an emulated device, which the test's end closes and checks.
func device(t *testing.T, o computetest.DeviceOptions) *computetest.Device {
	t.Helper()
	d := computetest.NewDevice(cpu.New(), o)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		d.Check(t)
	})
	return d
}

func tunerOn(t *testing.T, be compute.Backend, o TuneOptions) *Tuner {
	t.Helper()
	tok, err := wordpiece.Load(tiny())
	if err != nil {
		t.Fatal(err)
	}
	m, err := Load(tiny(), be)
	if err != nil {
		t.Fatal(err)
	}
	u, err := NewTuner(m, tok, o)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// An encoder on a device makes the same embeddings, whatever size its batches have. Its memory is
// bounded, however much it encodes, and Close gives all of it back.
func TestEncoderOnADevice(t *testing.T) {
	texts := many(t, 300)
	want := encode(t, open(t, tiny(), Options{Pooling: compute.First}), texts)
	for _, tokens := range []int{0, 100, 8_000} {
		d := device(t, computetest.DeviceOptions{BatchTokens: tokens})
		e, err := Open(tiny(), d, Options{Pooling: compute.First, Workers: 4})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(encode(t, e, texts), want) {
			t.Errorf("batches of %d tokens: other embeddings than on the CPU", tokens)
		}
		weights := len(e.model.parameters())
		const workspace = 6
		for range 5 {
			encode(t, e, texts)
			if got, most := d.Usage().Buffers, weights+deviceBatches*workspace; got > most {
				t.Fatalf("batches of %d tokens: %d buffers, want at most %d", tokens, got, most)
			}
		}
		if err := errors.Join(e.Close(), e.Close()); err != nil {
			t.Error(err)
		}
		if u := d.Usage(); u.Buffers != 0 || u.Bytes != 0 {
			t.Errorf("batches of %d tokens: after Close %d buffers with %d bytes are left", tokens, u.Buffers, u.Bytes)
		}
		if err := e.Encode(texts[:1], make([]float32, e.Dim())); !errors.Is(err, ErrClosed) {
			t.Errorf("Encode after Close: %v, want %v", err, ErrClosed)
		}
	}
}

// What a batch is made of goes to the device once for all operations on it.
func TestABatchIsCopiedOnce(t *testing.T) {
	d := device(t, computetest.DeviceOptions{BatchTokens: 8_000})
	u := tunerOn(t, d, TuneOptions{Pooling: compute.Mean, Dropout: 0.1})
	texts := many(t, 20)
	fit(t, u, texts, 3)
	if got := d.Usage().Batches; got != 3 {
		t.Errorf("3 steps copied %d batches", got)
	}
	encode(t, u.Encoder(), texts)
	if got := d.Usage().Batches; got > 3+deviceBatches {
		t.Errorf("encoding %d texts copied %d batches, want at most %d", len(texts), got-3, deviceBatches)
	}
}

// An encoder that nobody closes and nobody refers to any more gives its memory back.
func TestForgottenEncoderIsFreed(t *testing.T) {
	d := device(t, computetest.DeviceOptions{})
	func() {
		e, err := Open(tiny(), d, Options{Pooling: compute.Mean})
		if err != nil {
			t.Fatal(err)
		}
		encode(t, e, []string{"box"})
	}()
	for range 1000 {
		runtime.GC()
		if d.Usage().Buffers == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond) // for the goroutine that frees
	}
	t.Errorf("%d buffers are left", d.Usage().Buffers)
}

// A training may move between CPU and device after any step, and ends with the same bits.
func TestCheckpointsMoveBetweenDevices(t *testing.T) {
	texts := many(t, 20)
	const steps = 4
	for _, pooling := range []compute.Pooling{compute.First, compute.Mean} {
		o := TuneOptions{Pooling: pooling, Dropout: 0.1, DropTokens: 0.3}
		whole := tuner(t, tiny(), o)
		fit(t, whole, texts, steps)
		want := state(t, whole)
		for k := 1; k < steps; k++ {
			d := device(t, computetest.DeviceOptions{})
			for from, pair := range map[string][2]compute.Backend{
				"CPU": {cpu.New(), d}, "device": {d, cpu.New()},
			} {
				first, second := tunerOn(t, pair[0], o), tunerOn(t, pair[1], o)
				fit(t, first, texts, k)
				moved := state(t, first)
				fit(t, second, texts[:3], 1) // whatever came before does not count
				if err := second.ReadState(bytes.NewReader(moved)); err != nil {
					t.Fatal(err)
				}
				fit(t, second, texts, steps-k)
				if !bytes.Equal(state(t, second), want) {
					t.Errorf("from the %s after step %d: other weights than without the move", from, k)
				}
				for _, u := range []*Tuner{first, second} {
					if err := errors.Join(u.Close(), u.Encoder().Close()); err != nil {
						t.Error(err)
					}
				}
			}
			if got := d.Usage().Buffers; got != 0 {
				t.Errorf("%d buffers are left", got)
			}
		}
	}
}

// Larger batches add the same gradients in another order.
func TestTunerWithLargerBatches(t *testing.T) {
	texts := many(t, 100)
	d := device(t, computetest.DeviceOptions{BatchTokens: 8_000})
	large, small := tunerOn(t, d, TuneOptions{Pooling: compute.Mean}), tuner(t, tiny(), TuneOptions{Pooling: compute.Mean})
	n := len(texts) * small.Dim()
	outSmall := backward(t, small, texts, make([]float32, n))
	outLarge := backward(t, large, texts, make([]float32, n))
	if !slices.Equal(outLarge, outSmall) {
		t.Error("other vectors than on the CPU")
	}
	if len(large.ends) != 1 || len(small.ends) < 2 {
		t.Fatalf("%d and %d batches, want one large and several small", len(large.ends), len(small.ends))
	}
	slope := slices.Clone(outSmall)
	backward(t, small, texts, slope)
	backward(t, large, texts, slope)
	a, b := update(t, small, 1e-3), update(t, large, 1e-3)
	if d := a - b; d > 1e-4*a || d < -1e-4*a {
		t.Errorf("the gradient's norm is %v with large batches, %v with small ones", b, a)
	}
	if got, want := NewNetwork(small, nil).MaxBatch(), maxBatch; got != want {
		t.Errorf("the CPU takes %d texts, want %d", got, want)
	}
	if got, want := NewNetwork(large, nil).MaxBatch(), 8_000/large.encoder.options.MaxTokens; got != want {
		t.Errorf("the device takes %d texts, want %d", got, want)
	}
}

// Close gives back all but what the encoder needs, which goes on.
func TestTunerClose(t *testing.T) {
	d := device(t, computetest.DeviceOptions{})
	u := tunerOn(t, d, TuneOptions{Pooling: compute.Mean})
	texts := many(t, 200)
	fit(t, u, texts, 2)
	before := encode(t, u.Encoder(), texts)
	steady := d.Usage().Buffers
	fit(t, u, texts, 3)
	if got := d.Usage().Buffers; got != steady {
		t.Errorf("%d buffers after 5 steps, %d after 2", got, steady)
	}
	after := encode(t, u.Encoder(), texts)
	if err := errors.Join(u.Close(), u.Close()); err != nil {
		t.Error(err)
	}
	if slices.Equal(before, after) || !slices.Equal(encode(t, u.Encoder(), texts), after) {
		t.Error("the encoder changed with the tuner's end, or did not change in training")
	}
	weights, workspaces := len(u.encoder.model.parameters()), 6*deviceBatches
	if got := d.Usage().Buffers; got > weights+workspaces {
		t.Errorf("%d buffers are left, the encoder needs %d", got, weights+workspaces)
	}
	n := make([]float32, len(texts)*u.Dim())
	_, updated := u.Update(1)
	for what, err := range map[string]error{
		"Forward": u.Forward(texts, nil, n), "Update": updated, "WriteState": u.WriteState(new(bytes.Buffer)),
		"ReadState": u.ReadState(strings.NewReader("")),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s after Close: %v, want %v", what, err, ErrClosed)
		}
	}
	if err := u.Encoder().Close(); err != nil {
		t.Error(err)
	}
	if got := d.Usage().Buffers; got != 0 {
		t.Errorf("%d buffers are left", got)
	}
}

// A device that is lost or has no room left is an error of whatever waits for it next.
func TestDeviceFails(t *testing.T) {
	texts := []string{"box"}
	for _, c := range []struct {
		name    string
		options computetest.DeviceOptions
		want    error
	}{
		{"full by the weights", computetest.DeviceOptions{Memory: 50_000}, computetest.ErrMemory},
		{"full by the activations", computetest.DeviceOptions{Memory: 2_000_000}, computetest.ErrMemory},
		{"lost early", computetest.DeviceOptions{LostAfter: 5}, computetest.ErrLost},
		{"lost in training", computetest.DeviceOptions{LostAfter: 400}, computetest.ErrLost},
	} {
		d := device(t, c.options)
		u := tunerOn(t, d, TuneOptions{Pooling: compute.Mean})
		var err error
		for range 100 {
			if err = u.Forward(texts, nil, make([]float32, u.Dim())); err != nil {
				break
			}
			if err = u.Backward(make([]float32, u.Dim())); err != nil {
				break
			}
			if _, err = u.Update(1e-3); err != nil {
				break
			}
		}
		if !errors.Is(err, compute.ErrFailed) || !errors.Is(err, c.want) {
			t.Errorf("%s: training: %v, want %v", c.name, err, c.want)
		}
		written := u.WriteState(new(bytes.Buffer))
		encoded := u.Encoder().Encode(texts, make([]float32, u.Dim()))
		_, saved := u.Encoder().Files()
		for what, err := range map[string]error{"state": written, "encode": encoded, "files": saved} {
			if !errors.Is(err, compute.ErrFailed) || !errors.Is(err, c.want) {
				t.Errorf("%s: %s: %v, want %v", c.name, what, err, c.want)
			}
		}
		if err := errors.Join(u.Close(), u.Encoder().Close()); err != nil {
			t.Error(err)
		}
	}
}
