package wiring_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/train/encoders/bert/compute/computetest"
	"giantstream/train/encoders/bert/compute/cpu"
	"giantstream/train/encoders/bert/compute/devices"
)

func TestOpenDevice(t *testing.T) {
	emulated := devices.Drivers{"cuda": func(int, devices.Options) (devices.Device, error) {
		return computetest.NewDevice(cpu.New(), computetest.DeviceOptions{}), nil
	}}
	for _, c := range []struct {
		device, model string
		logs          string // "" for nothing
	}{
		{"cpu", "", ""},
		{"cpu", "./MiniLM", `level=INFO msg="transformers run on" device=cpu name=cpu`},
		{"cuda:1", "", `level=WARN msg="transformers run on an emulation, which is not a GPU`},
		{"cuda", "", `name="emulated device" gpu_math=float32`},
	} {
		cfg := config.Default()
		cfg.Train.Device, cfg.Train.BERT.Model = c.device, c.model
		var out bytes.Buffer
		d, err := wiring.OpenDevice(&cfg, emulated, slog.New(slog.NewTextHandler(&out, nil)))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if got := out.String(); !strings.Contains(got, c.logs) || (c.logs == "") != (got == "") {
			t.Errorf("%s: the log says %q, want %q", c.device, got, c.logs)
		}
	}
	cfg := config.Default()
	cfg.Train.Device = "cuda"
	_, err := wiring.OpenDevice(&cfg, nil, slog.New(slog.DiscardHandler))
	if !errors.Is(err, devices.ErrNoDriver) || !strings.Contains(err.Error(), "giantstream-cuda") {
		t.Errorf("without a driver: %v, want %v, which names the program that has one", err, devices.ErrNoDriver)
	}
}

// Every name that the configuration accepts is one of a device, and no other is.
func TestDeviceNamesAgree(t *testing.T) {
	drivers := devices.Drivers{"cuda": func(int, devices.Options) (devices.Device, error) {
		return computetest.NewDevice(cpu.New(), computetest.DeviceOptions{}), nil
	}}
	for _, name := range []string{"cpu", "cuda", "cuda:0", "cuda:15", "", "gpu", "CUDA", "cpu:0", "cuda:", "cuda:01",
		"cuda:-1", "cuda:x", "cuda:1:2", " cuda"} {
		cfg := config.Default()
		cfg.Train.Device = name
		d, err := drivers.Open(name, devices.Options{})
		if err == nil {
			_ = d.Close()
		}
		if accepted := cfg.Validate() == nil; accepted != (err == nil) {
			t.Errorf("%q: accepted by the configuration %t, opened: %v", name, accepted, err)
		}
	}
}
