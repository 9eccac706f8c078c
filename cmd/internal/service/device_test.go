package service

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"giantstream/config"
	"giantstream/internal/race"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/computetest"
	"giantstream/train/encoders/bert/compute/cpu"
	"giantstream/train/generation"
)

// onDevice configures a pipeline whose transformer is tiny.
func onDevice(t *testing.T) *config.Config {
	t.Helper()
	cfg, dir := config.Default(), t.TempDir()
	cfg.Pipeline, cfg.Shards, cfg.HTTP.Listen = "test", 2, ""
	cfg.StateDir, cfg.Kafka.DataDir = filepath.Join(dir, "state"), filepath.Join(dir, "broker")
	cfg.Window.Time, cfg.Evaluate.HoldoutEdges, cfg.Refresh.MinChanges = 100*time.Millisecond, 0, 0.2
	cfg.Train.Encoder, cfg.Train.Epochs, cfg.Train.CheckpointEvery = "bert", 1, time.Nanosecond
	cfg.Train.BERT = config.BERT{Model: "../../../train/encoders/bert/testdata/tiny", Pooling: "mean", MaxTokens: 16}
	return &cfg
}

// serveOn starts a service whose transformers run on a device.
func serveOn(t *testing.T, cfg *config.Config, store sink.Store, device compute.Backend) *Service {
	t.Helper()
	s, err := Start(t.Context(), Options{Config: cfg, Store: store, Device: device,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// emulated opens an emulated device, which the test's end closes and checks.
func emulated(t *testing.T, o computetest.DeviceOptions) *computetest.Device {
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

// run serves until the service fails, for two minutes at most.
func run(t *testing.T, s *Service) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	return s.Run(ctx)
}

// A service on a device publishes what one on the CPU does, and holds one generation there. A device
// that is lost while it serves ends the service.
func TestServiceOnADevice(t *testing.T) {
	race.SkipComputing(t)
	vectors := map[bool]map[string][]float32{}
	for _, device := range []bool{false, true} {
		cfg, d := onDevice(t), emulated(t, computetest.DeviceOptions{})
		var be compute.Backend
		if device {
			be = d
		}
		s := serveOn(t, cfg, &memstore.Store{}, be)
		produceGraph(t, s, cfg)
		if err := upToDate(t, s, 1); err != nil {
			t.Fatal(err)
		}
		produce(t, s, cfg.Kafka.Topics.Nodes, map[string]any{nodeID(0): map[string]any{"id": nodeID(0), "text": "new"}})
		if err := upToDate(t, s, 2); err != nil {
			t.Fatal(err)
		}
		vectors[device] = map[string][]float32{}
		for id, r := range sinkTopic(t, s, cfg) {
			vectors[device][id] = r.Vector
		}
		if device {
			encoder := s.Current().Encoder
			_ = encoder.Encode([]string{"x"}, make([]float32, encoder.Dim())) // its workspace is there, and the device is used
			const weights, workspaces = 37, 2 * 6
			eventually(t, "the generation before gives its memory back", func() bool {
				runtime.GC()
				buffers := d.Usage().Buffers
				return buffers > 0 && buffers <= weights+workspaces
			})
			d.Lose()
			produce(t, s, cfg.Kafka.Topics.Nodes, map[string]any{nodeID(1): map[string]any{"id": nodeID(1), "text": "box"}})
			if err := run(t, s); !errors.Is(err, compute.ErrFailed) || !errors.Is(err, computetest.ErrLost) {
				t.Errorf("with the device lost, the service ends with: %v, want %v", err, computetest.ErrLost)
			}
		}
		if err := s.Close(); err != nil && !device {
			t.Error(err)
		}
	}
	if len(vectors[true]) == 0 || len(vectors[true]) != len(vectors[false]) {
		t.Fatalf("%d embeddings on the device, %d on the CPU", len(vectors[true]), len(vectors[false]))
	}
	for id, want := range vectors[false] {
		if !slices.Equal(vectors[true][id], want) {
			t.Errorf("%s: another embedding than on the CPU", id)
		}
	}
}

// A device that is lost during a build ends the service with the error. The next start, on another
// device, resumes the build.
func TestDeviceLostDuringARefresh(t *testing.T) {
	cfg, store := onDevice(t), &memstore.Store{}
	s := serveOn(t, cfg, store, emulated(t, computetest.DeviceOptions{LostAfter: 500}))
	produceGraph(t, s, cfg)
	if err := run(t, s); !errors.Is(err, compute.ErrFailed) || !errors.Is(err, computetest.ErrLost) {
		t.Errorf("the service ends with: %v, want %v", err, computetest.ErrLost)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	doc, err := generation.Load(t.Context(), store, 1)
	if err != nil || doc.Status != generation.Building {
		t.Fatalf("generation 1: %v, %v, want an unfinished one", doc, err)
	}
	s = serveOn(t, cfg, store, emulated(t, computetest.DeviceOptions{}))
	if err := upToDate(t, s, 1); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
