//go:build cuda

package bert

import (
	"testing"

	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/cuda"
)

// backend is what the tests run on: the first device.
func backend(t testing.TB) compute.Backend {
	t.Helper()
	be, err := cuda.Open(cuda.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := be.Close(); err != nil {
			t.Error(err)
		}
	})
	return be
}
