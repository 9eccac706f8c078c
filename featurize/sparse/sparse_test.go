package sparse

import (
	"reflect"
	"testing"
)

func TestTranspose(t *testing.T) {
	m := &Matrix{Cols: 4}
	m.Append(Vector{Index: []int32{1, 3}, Value: []float32{2, 3}})
	m.Append(Vector{})
	m.Append(Vector{Index: []int32{0, 1}, Value: []float32{5, 7}})
	got := m.Transpose()
	want := &Matrix{Rows: 4, Cols: 3, Start: []int64{0, 1, 3, 3, 4},
		Index: []int32{2, 0, 2, 0}, Value: []float32{5, 2, 7, 3}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if back := got.Transpose(); !reflect.DeepEqual(back, m) {
		t.Errorf("transposed twice: %+v, want %+v", back, m)
	}
	m.Value = nil
	if m.Transpose().Value != nil {
		t.Error("an adjacency got values")
	}
}

func TestWeightsOfARow(t *testing.T) {
	for _, c := range []struct {
		v              Vector
		sum, effective float64
	}{
		{Vector{Index: []int32{1, 3, 8}}, 3, 3},
		{Vector{Index: []int32{1, 3, 8}, Value: []float32{1, 1, 1}}, 3, 3},
		{Vector{Index: []int32{1, 3, 8}, Value: []float32{0.25, 0.25, 0.25}}, 0.75, 3},
		{Vector{Index: []int32{1, 3}, Value: []float32{3, 1}}, 4, 1.6},
	} {
		if c.v.Sum() != c.sum || c.v.Effective() != c.effective {
			t.Errorf("%v: sum %g, effective %g; want %g, %g", c.v, c.v.Sum(), c.v.Effective(), c.sum, c.effective)
		}
	}
}
