package build

import (
	"os"
	"testing"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/train/numeric/blas"
)

// TestMain builds with the products of matrices that programs build with.
func TestMain(m *testing.M) {
	blas32.Use(blas.New())
	os.Exit(m.Run())
}
