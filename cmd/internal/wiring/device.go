package wiring

import (
	"errors"
	"fmt"
	"log/slog"

	"giantstream/config"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/devices"
)

// OpenDevice opens train.device, on which transformers are trained and run, and logs what it is. The
// error is devices.ErrNoDriver if the program has no driver for it.
func OpenDevice(cfg *config.Config, drivers devices.Drivers, log *slog.Logger) (devices.Device, error) {
	t := cfg.Train
	d, err := drivers.Open(t.Device, devices.Options{Memory: int64(t.GPUMemory), Math: compute.Math(t.GPUMath)})
	if errors.Is(err, devices.ErrNoDriver) {
		return nil, fmt.Errorf("train.device: %w. For NVIDIA GPUs build the program giantstream-cuda ('go build "+
			"-tags cuda ./cmd/giantstream-cuda'; docs/OPERATIONS.md, \"On a GPU\"), or set train.device: cpu", err)
	}
	if err != nil {
		return nil, fmt.Errorf("train.device: %w", err)
	}
	about := []any{"device", t.Device, "name", d.Name()}
	if t.Device != config.CPU {
		about = append(about, "gpu_math", t.GPUMath)
	}
	switch {
	case d.Emulated():
		log.Warn("transformers run on an emulation, which is not a GPU: it is for tests, and its speed says nothing",
			about...)
	case t.Device != config.CPU || t.BERT.Model != "":
		log.Info("transformers run on", about...)
	}
	return d, nil
}
