package hybrid

import (
	"math"
	"slices"
	"testing"

	"giantstream/train"
	"giantstream/train/numeric"
)

// The views of an item's vectors stand beside its text, each with a length in proportion to it, behind its behaviour.
// A view that an item lacks is zero, and changes no other.
func TestVectorsAreViews(t *testing.T) {
	v := testViews(t)
	n := v.Len()
	view := func(weight float32, dim int, of ...string) *ItemView {
		slices.SortFunc(of, func(a, b string) int {
			if numeric.HashString(a) < numeric.HashString(b) {
				return -1
			}
			return 1
		})
		var hashes []uint64
		for _, id := range of {
			hashes = append(hashes, numeric.HashString(id))
		}
		rows := make([]uint16, dim*len(of))
		for k := range of {
			rows[k*dim] = 0x3f80 // 1, then zeros
		}
		b, err := NewItemView(1, dim, hashes, rows)
		if err != nil {
			t.Fatal(err)
		}
		return b.WithWeight(weight)
	}
	v.Behaviour = view(2, 1, "ordered", "all")
	v.Vectors = []VectorView{{Name: "image", Items: view(0.5, 3, "all", "seen"),
		Metric: []float32{0, 2, 0, 1, 0, 0, 0, 0, 1}},
		{Name: "said", Items: view(4, 2, "all"), Metric: []float32{3, 4, 1, 1}}}
	if v.Len() != n+1+3+2 {
		t.Fatalf("views have the length %d, those of the text %d", v.Len(), n)
	}
	for id, want := range map[string][]float32{"ordered": {2, 0, 0, 0, 0, 0}, "seen": {0, 0, 0.5, 0, 0, 0},
		"all": {2, 0, 0.5, 0, 2.4, 3.2}, "none": {0, 0, 0, 0, 0, 0}} {
		out := make([]float32, len(texts)*v.Len())
		ids := slices.Repeat([]string{id}, len(texts))
		if err := v.WriteViews(ids, texts, train.FeaturesOf(v.Vectorizer, texts), out); err != nil {
			t.Fatal(err)
		}
		for i := range texts {
			row := out[i*v.Len() : (i+1)*v.Len()]
			length := math.Sqrt(float64(numeric.Dot(row[:n], row[:n])))
			if length == 0 {
				length = 1
			}
			for k, got := range row[n:] {
				if math.Abs(float64(got)-length*float64(want[k])) > 1e-5*length {
					t.Errorf("%s: %v beside views of length %g, want %v times that", id, row[n:], length, want)
				}
			}
		}
	}
}

// A row is the direction of the vector from the mean direction, on the axes, whatever the vector's length.
func TestRowsOfVectors(t *testing.T) {
	m, err := NewVectorMap([]float32{0.6, 0, 0}, []float32{0, 1, 1, 0, 0, 0})
	if err != nil || m.Len() != 3 || m.Dim() != 2 {
		t.Fatalf("%+v, %v", m, err)
	}
	room := make([]float32, 5)
	of := func(x ...float32) (out [2]float32, ok bool) {
		row := make([]uint16, 2)
		ok = m.Row(x, room, row)
		return [2]float32{numeric.FromBF16(row[0]), numeric.FromBF16(row[1])}, ok
	}
	if got, ok := of(6e20, 8e20, 0); !ok || got != [2]float32{1, 0} {
		t.Errorf("the row is %v, %t", got, ok)
	}
	if got, ok := of(-1e-20, 0, 0); !ok || got != [2]float32{0, -1} {
		t.Errorf("the row is %v, %t", got, ok)
	}
	infinite := float32(math.Inf(1))
	for name, x := range map[string][]float32{"short": {1, 2}, "zero": {0, 0, 0}, "infinite": {infinite, 0, 0}} {
		if _, ok := of(x...); ok {
			t.Errorf("a vector that is %s has a row", name)
		}
	}
	for _, bad := range [][2][]float32{{{}, {1}}, {{1, 2}, {1, 2, 3}}, {{1}, {}}} {
		if _, err := NewVectorMap(bad[0], bad[1]); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}
