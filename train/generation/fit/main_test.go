package fit

import (
	"os"
	"testing"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/train/numeric/blas"
)

// TestMain trains as programs do, with our products of matrices: gonum's take twice as long.
func TestMain(m *testing.M) {
	blas32.Use(blas.New())
	os.Exit(m.Run())
}
