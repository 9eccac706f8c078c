package vector_test

import (
	"math"
	"slices"
	"testing"

	"giantstream/internal/vector"
)

func TestNormalize(t *testing.T) {
	for _, tt := range []struct {
		name   string
		x      []float32
		length float32
		want   []float32
	}{
		{"empty", nil, 0, nil},
		{"zero", []float32{0, 0}, 0, []float32{0, 0}},
		{"of length 5", []float32{3, -4}, 5, []float32{0.6, -0.8}},
		{"smaller than any float32 squared", []float32{3e-30, 4e-30}, 5e-30, []float32{0.6, 0.8}},
		{"larger than any float32 squared", []float32{3e30, 4e30}, 5e30, []float32{0.6, 0.8}},
	} {
		x := slices.Clone(tt.x)
		if length := vector.Normalize(x); math.Abs(float64(length/tt.length)-1) > 1e-6 && length != tt.length {
			t.Errorf("%s: length %g, want %g", tt.name, length, tt.length)
		}
		for i, want := range tt.want {
			if math.Abs(float64(x[i]-want)) > 1e-7 {
				t.Errorf("%s: got %v, want %v", tt.name, x, tt.want)
			}
		}
	}
}
