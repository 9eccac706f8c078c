package cpu

import (
	"testing"

	gonumblas "gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/gonum"

	"giantstream/train/encoders/bert/compute/computetest"
	"giantstream/train/numeric/blas"
)

func TestBackend(t *testing.T) {
	defer blas32.Use(blas32.Implementation())
	for name, im := range map[string]gonumblas.Float32{"gonum": gonum.Implementation{}, "giantstream": blas.New()} {
		blas32.Use(im)
		t.Run(name, func(t *testing.T) { computetest.Run(t, New()) })
	}
}
