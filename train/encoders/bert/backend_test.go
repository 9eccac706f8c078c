//go:build !cuda

package bert

import (
	"testing"

	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/cpu"
)

// backend is what the tests run on: with the tag cuda, a device.
func backend(testing.TB) compute.Backend { return cpu.New() }
