package mutation

import (
	"math"
	"testing"
)

func TestWeightsOrderAsNumbers(t *testing.T) {
	var before Weight
	if before.Stated() || before.Float() != 1 {
		t.Errorf("a weight that is not stated is %v, stated: %t; want 1, false", before.Float(), before.Stated())
	}
	for _, f := range []float32{0, math.SmallestNonzeroFloat32, 0.5, 1, 2.5, math.MaxFloat32} {
		w := WeightOf(f)
		if !w.Stated() || !w.Valid() || w.Float() != f {
			t.Errorf("%v comes back as %v, stated: %t, valid: %t", f, w.Float(), w.Stated(), w.Valid())
		}
		if w <= before {
			t.Errorf("the weight of %v is not above that of %v", f, before.Float())
		}
		before = w
	}
	if WeightOf(float32(math.Copysign(0, -1))) != WeightOf(0) {
		t.Error("-0 is not 0")
	}
	if (before + 1).Valid() {
		t.Error("infinity is a weight")
	}
}
