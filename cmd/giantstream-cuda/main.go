//go:build cuda

// Command giantstream-cuda is giantstream with transformers on NVIDIA GPUs (train.device: cuda): the
// same commands, linked with the CUDA driver, without which the program does not start.
package main

import (
	"os"

	"giantstream/cmd/internal/cli"
	"giantstream/train/encoders/bert/compute/cuda"
	"giantstream/train/encoders/bert/compute/devices"
)

func main() { os.Exit(cli.Main(devices.Drivers{"cuda": open})) }

// open is a devices.Driver.
func open(index int, o devices.Options) (devices.Device, error) {
	b, err := cuda.Open(cuda.Options{Device: index, Memory: o.Memory, Math: o.Math})
	if err != nil {
		return nil, err // and not a device that holds a nil
	}
	return b, nil
}
