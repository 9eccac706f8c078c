package hybrid

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/encoders/bag"
	"giantstream/train/numeric"
)

// letters is a vectorizer whose features are the letters a to f.
type letters struct{}

func (letters) Dim() int { return 6 }

func (letters) Transform(text string, dst sparse.Vector) sparse.Vector {
	dst.Index, dst.Value = dst.Index[:0], dst.Value[:0]
	for f := range int32(6) {
		if n := strings.Count(text, string('a'+f)); n > 0 {
			dst.Index, dst.Value = append(dst.Index, f), append(dst.Value, float32(n))
		}
	}
	return dst
}

// firstThree projects to the counts of a to c.
type firstThree struct{}

func (firstThree) Dim() int { return 3 }

func (firstThree) Apply(v sparse.Vector, out []float32) {
	clear(out)
	for k, f := range v.Index {
		if f < 3 {
			out[f] = v.Value[k]
		}
	}
}

func testViews(t *testing.T) Views {
	t.Helper()
	m, err := bag.NewModel([]int32{0, 2, 5}, []float32{1, 2, -3, 4, 5, 6}, 6, 2)
	if err != nil {
		t.Fatal(err)
	}
	return Views{Vectorizer: letters{}, Projection: firstThree{}, Table: m, Solution: []float32{1, 0, 0, 1, 1, 1},
		TextWeight: 0.5}
}

var texts = []string{"abc", "fade", "d", "", "zz", "cab fee"}

func sampleOf(t *testing.T, v Views) []float32 {
	t.Helper()
	all := make([]float32, len(texts)*v.Len())
	if err := v.WriteViews(nil, texts, train.FeaturesOf(v.Vectorizer, texts), all); err != nil {
		t.Fatal(err)
	}
	return all
}

// encoded is an encoder that knows the counts of d, e and f.
type encoded struct{}

func (encoded) Kind() string { return "encoded" }
func (encoded) Dim() int     { return 3 }

func (encoded) Encode(texts []string, out []float32) error {
	return train.EncodeFeatures(len(texts), train.FeaturesOf(letters{}, texts), 3, out,
		func() func(sparse.Vector, []float32) {
			return func(v sparse.Vector, out []float32) {
				clear(out)
				for k, f := range v.Index {
					if f >= 3 {
						out[f-3] = v.Value[k]
					}
				}
				numeric.Normalize(out)
			}
		})
}

func TestViewsHaveTheirLengths(t *testing.T) {
	v := testViews(t)
	row := sampleOf(t, v)[:v.Len()]
	for k, want := range []float64{1, 0.5, 0.5} {
		var sum float64
		for _, x := range row[2*k : 2*k+2] {
			sum += float64(x) * float64(x)
		}
		if math.Abs(math.Sqrt(sum)-want) > 1e-6 {
			t.Errorf("view %d has length %v, want %v", k, math.Sqrt(sum), want)
		}
	}
}

// With all axes kept, the cosines of embeddings are those of the views side by side.
func TestJoinKeepsCosines(t *testing.T) {
	v := testViews(t)
	sample := sampleOf(t, v)
	n := v.Len()
	join, err := Join(sample, n, n)
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(v, join, n)
	if err != nil {
		t.Fatal(err)
	}
	z := make([]float32, len(texts)*n)
	if err := e.Encode(texts, z); err != nil {
		t.Fatal(err)
	}
	for i := range texts {
		numeric.Normalize(sample[i*n : (i+1)*n])
	}
	for i := range texts {
		for j := range texts {
			want := numeric.Dot(sample[i*n:(i+1)*n], sample[j*n:(j+1)*n])
			got := numeric.Dot(z[i*n:(i+1)*n], z[j*n:(j+1)*n])
			if math.Abs(float64(want-got)) > 1e-5 {
				t.Errorf("cosine of %q and %q is %v, of their views %v", texts[i], texts[j], got, want)
			}
		}
	}
	for i, text := range texts {
		if norm := numeric.Normalize(slices.Clone(z[i*n : (i+1)*n])); (norm == 0) != slices.Contains([]string{"", "d",
			"zz"}, text) {
			t.Errorf("%q: length %v; only a text of which no view knows anything has length 0", text, norm)
		}
	}
}

// A transformer's view shares the length of the text's own, also where its dimension is another.
func TestJoinWithATransformer(t *testing.T) {
	v := testViews(t)
	v.Model = encoded{}
	n := v.Len()
	if n != 9 {
		t.Fatalf("views of %d numbers, want 2+2+2+3", n)
	}
	sample := sampleOf(t, v)
	fade := sample[n : 2*n] // of which every view knows something
	for name, c := range map[string]struct {
		view []float32
		want float64
	}{
		"table": {fade[:2], 1}, "linear": {fade[2:4], 0.5}, "text": {fade[4:6], 0.5 / math.Sqrt2},
		"transformer": {fade[6:], 0.5 / math.Sqrt2},
	} {
		if got := math.Sqrt(float64(numeric.Dot(c.view, c.view))); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("view %s has length %v, want %v", name, got, c.want)
		}
	}
	join, err := Join(sample, n, n)
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(v, join, n)
	if err != nil {
		t.Fatal(err)
	}
	if e.Kind() != "encoded" {
		t.Errorf("kind %q", e.Kind())
	}
	z := make([]float32, 2*n)
	if err := e.Encode(texts[:2], z); err != nil { // "abc", "fade"
		t.Fatal(err)
	}
	numeric.Normalize(sample[:n])
	numeric.Normalize(sample[n : 2*n])
	if got, want := numeric.Dot(z[:n], z[n:]), numeric.Dot(sample[:n], sample[n:2*n]); math.Abs(float64(got-want)) > 1e-5 {
		t.Errorf("cosine %v, of the views %v", got, want)
	}
}

func TestNewRefusesSizesThatDoNotFit(t *testing.T) {
	v := testViews(t)
	short := v
	short.Solution = short.Solution[:4]
	for name, f := range map[string]func() error{
		"join":     func() error { _, err := New(v, make([]float32, 11), 2); return err },
		"solution": func() error { _, err := New(short, make([]float32, 12), 2); return err },
		"no dim":   func() error { _, err := New(v, nil, 0); return err },
	} {
		if f() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// An item's behaviour stands beside its text, with a length in proportion to that of the text's views. Other items, and
// texts that are no item's, are their texts alone.
func TestBehaviour(t *testing.T) {
	v := testViews(t)
	plain := sampleOf(t, v)
	n := v.Len()
	hashes := []uint64{numeric.HashString("a"), numeric.HashString("b")}
	rows := []uint16{0x3f80, 0, 0x3f00, 0xbf00} // (1, 0) and (½, −½)
	if hashes[0] > hashes[1] {
		slices.Reverse(hashes)
		rows = append(rows[2:], rows[:2]...)
	}
	want := map[string][2]float32{"a": {1, 0}, "b": {0.5, -0.5}, "c": {}}
	var err error
	if v.Behaviour, err = NewItemView(2, 2, hashes, rows); err != nil {
		t.Fatal(err)
	}
	for id, of := range want {
		out := make([]float32, len(texts)*v.Len())
		ids := slices.Repeat([]string{id}, len(texts))
		if err := v.WriteViews(ids, texts, train.FeaturesOf(v.Vectorizer, texts), out); err != nil {
			t.Fatal(err)
		}
		for i, text := range texts {
			row, alone := out[i*(n+2):(i+1)*(n+2)], plain[i*n:(i+1)*n]
			if !slices.Equal(row[:n], alone) {
				t.Errorf("%q of %s: views of the text %v, without behaviour %v", text, id, row[:n], alone)
			}
			length := float32(math.Sqrt(float64(numeric.Dot(alone, alone))))
			if length == 0 {
				length = 1
			}
			for k, got := range row[n:] {
				if d := got - 2*length*of[k]; max(d, -d) > 1e-5*length {
					t.Errorf("%q of %s: behaviour %v beside views of length %g", text, id, row[n:], length)
				}
			}
		}
	}
	join, err := Join(sampleOf(t, v), v.Len(), 2)
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(v, join, 2)
	if err != nil {
		t.Fatal(err)
	}
	text, unknown := make([]float32, 2*len(texts)), make([]float32, 2*len(texts))
	if err := errors.Join(e.Encode(texts, text), e.EncodeItems(slices.Repeat([]string{"c"}, len(texts)), texts, nil,
		unknown)); err != nil || !slices.Equal(text, unknown) {
		t.Errorf("texts %v, of an unknown item %v, %v", text, unknown, err)
	}
	for _, bad := range []struct {
		weight float32
		dim    int
		hashes []uint64
		rows   []uint16
	}{{1, 0, nil, nil}, {0, 1, []uint64{1}, []uint16{0}}, {1, 1, []uint64{2, 1}, []uint16{0, 0}},
		{1, 1, []uint64{1, 1}, []uint16{0, 0}}, {1, 2, []uint64{1}, []uint16{0}}} {
		if _, err := NewItemView(bad.weight, bad.dim, bad.hashes, bad.rows); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}
