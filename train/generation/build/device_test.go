package build

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"giantstream/internal/race"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/computetest"
	"giantstream/train/encoders/bert/compute/cpu"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
)

// emulate has a builder's transformers run on an emulated device, which the test's end checks: it
// wants no buffer left, but for those that wait for the garbage collector.
func emulate(t *testing.T, b *testBuild, o computetest.DeviceOptions) *computetest.Device {
	t.Helper()
	d := computetest.NewDevice(cpu.New(), o)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		d.Check(t)
	})
	b.Device = d
	return d
}

// encoderBytes are the weights of generation 1.
func encoderBytes(t *testing.T, s sink.Store) []byte {
	t.Helper()
	all := objects(t, s)
	return slices.Concat(all[generation.Prefix(1)+"encoder/bert/model.safetensors"],
		all[generation.Prefix(1)+"encoder/model.safetensors"])
}

// A build on a device stores what one on the CPU does, and gives all memory back. The generation
// then encodes on the device that it is opened on.
func TestBuildOnADevice(t *testing.T) {
	race.SkipComputing(t)
	log := graphOf(400)
	onCPU, store := &memstore.Store{}, &memstore.Store{}
	buildWith(t, joinedBERT(onCPU), 1, log, nil)
	b := joinedBERT(store)
	d := emulate(t, b, computetest.DeviceOptions{})
	doc := buildWith(t, b, 1, log, nil)
	for name, want := range objects(t, onCPU) {
		if !bytes.Equal(objects(t, store)[name], want) {
			t.Errorf("%s differs from what a build on the CPU stores", name)
		}
	}
	if u := d.Usage(); u.Buffers != 0 || u.Made == 0 {
		t.Errorf("%d of %d buffers are left", u.Buffers, u.Made)
	}
	texts := []string{"one text", "and another"}
	var vectors [2][]float32
	for i, device := range []compute.Backend{nil, d} {
		g, err := generation.Open(t.Context(), store, doc, device)
		if err != nil {
			t.Fatal(err)
		}
		made := d.Usage().Made
		vectors[i] = make([]float32, len(texts)*g.Encoder.Dim())
		if err := g.Encoder.Encode(texts, vectors[i]); err != nil {
			t.Fatal(err)
		}
		if used := d.Usage().Made > made; used != (device != nil) {
			t.Errorf("opened on %v, the generation has used the device: %t", device, used)
		}
	}
	if !slices.Equal(vectors[0], vectors[1]) {
		t.Error("other embeddings on the device than on the CPU")
	}
}

// The document tells how GPUs multiplied, also that the training was resumed in another mode.
func TestBuildNotesHowTheDeviceMultiplies(t *testing.T) {
	race.SkipComputing(t)
	log := graphOf(400)
	store := &stopping{Store: &memstore.Store{}, folder: checkpointsFolder, after: 1}
	for i, m := range []compute.Math{compute.BF16, compute.TF32, compute.Float32} {
		store.keys = nil
		b := tinyBERT(store)
		emulate(t, b, computetest.DeviceOptions{Math: m})
		ctx, cancel := context.WithCancel(t.Context())
		if store.stop = nil; i < 2 {
			store.stop = cancel
		}
		doc, err := b.until(ctx, log, nil, stages.Finish)
		if (err == nil) != (i == 2) {
			t.Fatalf("build %d: %v", i, err)
		}
		cancel()
		if want := []compute.Math{compute.BF16, compute.TF32}; i == 2 && !slices.Equal(doc.GPUMath, want) {
			t.Errorf("the document has the modes %q, want %q", doc.GPUMath, want)
		}
	}
}

// A build that is cut off on the CPU goes on on a device, and the other way round, to the same bytes.
func TestBuildMovesToAnotherDevice(t *testing.T) {
	race.SkipComputing(t)
	log := graphOf(400)
	undisturbed := &stopping{Store: &memstore.Store{}, folder: checkpointsFolder}
	buildWith(t, tinyBERT(undisturbed), 1, log, nil)
	want := encoderBytes(t, undisturbed)
	for _, toDevice := range []bool{true, false} {
		store := &stopping{Store: &memstore.Store{}, folder: checkpointsFolder, after: 3}
		b := tinyBERT(store)
		if !toDevice {
			emulate(t, b, computetest.DeviceOptions{})
		}
		ctx, cancel := context.WithCancel(t.Context())
		store.stop = cancel
		if _, err := b.until(ctx, log, nil, stages.Finish); !errors.Is(err, context.Canceled) {
			t.Fatalf("build that is cut off: %v", err)
		}
		store.stop, store.puts = nil, 0
		b = tinyBERT(store)
		if toDevice {
			emulate(t, b, computetest.DeviceOptions{})
		}
		buildWith(t, b, 1, log, nil)
		if !bytes.Equal(encoderBytes(t, store), want) {
			t.Errorf("to the device %t: other weights than without the move", toDevice)
		}
		if want := undisturbed.puts - 3; store.puts != want {
			t.Errorf("to the device %t: the training took %d steps, want %d", toDevice, store.puts, want)
		}
	}
}

// A device that fails ends the build with an error that says what to do. The checkpoints stay, and
// the next build, on another device, goes on from the newest.
func TestDeviceFailsDuringABuild(t *testing.T) {
	race.SkipComputing(t)
	log := graphOf(400)
	undisturbed := &memstore.Store{}
	b := tinyBERT(undisturbed)
	whole := emulate(t, b, computetest.DeviceOptions{})
	buildWith(t, b, 1, log, nil)
	want, operations, memory := encoderBytes(t, undisturbed), whole.Operations(), whole.Usage().Most

	for _, c := range []struct {
		name    string
		options computetest.DeviceOptions
		want    error
		resumes bool
	}{
		{"no memory", computetest.DeviceOptions{Memory: memory / 2}, computetest.ErrMemory, false},
		{"lost in training", computetest.DeviceOptions{LostAfter: operations / 2}, computetest.ErrLost, true},
		{"lost at the end", computetest.DeviceOptions{LostAfter: operations - 10}, computetest.ErrLost, false},
	} {
		store := &memstore.Store{}
		b := tinyBERT(store)
		emulate(t, b, c.options)
		_, err := b.until(t.Context(), log, nil, stages.Finish)
		if !errors.Is(err, compute.ErrFailed) || !errors.Is(err, c.want) {
			t.Fatalf("%s: %v, want %v", c.name, err, c.want)
		}
		if said := err.Error(); !strings.Contains(said, "train.device") || strings.Contains(said, "\n") ||
			strings.Count(said, c.want.Error()) != 1 {
			t.Errorf("%s: the error is %q, want one line that names the cause once and train.device", c.name, said)
		}
		doc, err := generation.Load(t.Context(), store, 1)
		if err != nil || doc.Status != generation.Building {
			t.Fatalf("%s: the document: %v, %v, want one of a build that can go on", c.name, doc, err)
		}
		checkpoints := 0
		for name := range objects(t, store) {
			if strings.Contains(name, checkpointsFolder) {
				checkpoints++
			}
		}
		if (checkpoints > 0) != c.resumes {
			t.Errorf("%s: %d checkpoints are there", c.name, checkpoints)
		}
		b = tinyBERT(store)
		emulate(t, b, computetest.DeviceOptions{})
		buildWith(t, b, 1, log, nil)
		if !bytes.Equal(encoderBytes(t, store), want) {
			t.Errorf("%s: the build that went on has other weights", c.name)
		}
	}
}
