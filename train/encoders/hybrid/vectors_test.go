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

// A text that comes with a vector is encoded as an item that is new and has both, to the bit, and a text that comes
// without is encoded as a text alone.
func TestTextsWithVectors(t *testing.T) {
	v := testViews(t)
	own := func(name string, input int32) VectorView {
		m, err := NewVectorMap([]float32{0.1, 0, 0}, []float32{0, 1, 1, 0.5, 0, 0.25})
		if err != nil {
			t.Fatal(err)
		}
		items, err := NewItemView(0.7, 2, []uint64{7}, []uint16{0x3f80, 0})
		if err != nil {
			t.Fatal(err)
		}
		return VectorView{Name: name, Input: input, Map: m, Items: items, Metric: []float32{3, 4, 1, 1}}
	}
	v.Vectors = []VectorView{own("external", 5), own("image", 6)}
	behaviour, err := NewItemView(1, 2, []uint64{7}, []uint16{0x3f80, 0})
	if err != nil {
		t.Fatal(err)
	}
	v.Behaviour = behaviour
	dim := 3
	join := make([]float32, v.Len()*dim)
	for k := range join {
		join[k] = float32(math.Sin(float64(k)))
	}
	e, err := New(v, join, dim)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"external", "image"} {
		f := e.Following()
		vectors, ids := make([][]float32, len(texts)), make([]string, len(texts))
		for i := range texts {
			ids[i] = string(rune('a' + i))
			if i%3 > 0 {
				vectors[i] = []float32{float32(i), 1, float32(-i * i)}
				f.Follow(ids[i], map[string]int32{"external": 5, "image": 6}[name], map[string][]float32{name: vectors[i]})
			}
		}
		got, want := make([]float32, len(texts)*dim), make([]float32, len(texts)*dim)
		if err := e.EncodeTexts(texts, name, vectors, got); err != nil {
			t.Fatal(err)
		}
		if err := f.EncodeItems(ids, texts, nil, want); err != nil {
			t.Fatal(err)
		}
		plain := make([]float32, len(texts)*dim)
		if err := e.Encode(texts, plain); err != nil {
			t.Fatal(err)
		}
		for i := range texts {
			at, to := i*dim, (i+1)*dim
			if !slices.Equal(got[at:to], want[at:to]) {
				t.Errorf("%s: text %d is %v, an item that has the same is %v", name, i, got[at:to], want[at:to])
			}
			if same := slices.Equal(got[at:to], plain[at:to]); same != (vectors[i] == nil) {
				t.Errorf("%s: text %d is %v, and %v as a text alone", name, i, got[at:to], plain[at:to])
			}
		}
	}
	if err := e.EncodeTexts(texts, "other", make([][]float32, len(texts)), make([]float32, len(texts)*dim)); err == nil {
		t.Error("a view that does not exist was taken")
	}
	if err := e.EncodeTexts(texts, "image", nil, make([]float32, len(texts)*dim)); err == nil {
		t.Error("fewer vectors than texts were taken")
	}
}
