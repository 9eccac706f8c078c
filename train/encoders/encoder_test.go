package encoders

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"giantstream/featurize/sparse"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/train"
	"giantstream/train/encoders/bag"
	"giantstream/train/encoders/bert"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/cpu"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/encoders/linear"
	"giantstream/train/encoders/safetensors"
	"giantstream/train/numeric"
	"giantstream/train/objectives/xmc"
)

// letters is a vectorizer whose features are the letters a to j.
type letters struct{}

func (letters) Dim() int { return 10 }

func (letters) Transform(text string, dst sparse.Vector) sparse.Vector {
	dst.Index, dst.Value = dst.Index[:0], dst.Value[:0]
	for f := range int32(10) {
		if n := strings.Count(text, string('a'+f)); n > 0 {
			dst.Index, dst.Value = append(dst.Index, f), append(dst.Value, float32(n))
		}
	}
	return dst
}

// firstFour projects to the counts of a to d.
type firstFour struct{}

func (firstFour) Dim() int { return 4 }

func (firstFour) Apply(v sparse.Vector, out []float32) {
	clear(out)
	for k, f := range v.Index {
		if f < 4 {
			out[f] = v.Value[k]
		}
	}
}

var texts = []string{"abba", "deed", "jig", "", "zzz"}

func encoders(t *testing.T) []train.Encoder {
	t.Helper()
	l, err := linear.NewLSA(letters{}, firstFour{}, 3)
	if err != nil {
		t.Fatal(err)
	}
	w, err := linear.New(letters{}, firstFour{}, []float32{1, 2, 3, 4, -1, 0, 0, 1}, 2)
	if err != nil {
		t.Fatal(err)
	}
	m, err := bag.NewModel([]int32{0, 3, 9}, []float32{1, 2, -3, 4, 5, 6}, 10, 2)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bag.NewEncoder(letters{}, m)
	if err != nil {
		t.Fatal(err)
	}
	table, err := bag.NewModel([]int32{0, 3, 9}, []float32{1, 2, -3, 4, 5, 6}, 10, 2)
	if err != nil {
		t.Fatal(err)
	}
	views := hybrid.Views{Vectorizer: letters{}, Projection: firstFour{}, Table: table,
		Solution: []float32{1, 2, 3, 4, -1, 0, 0, 1}, TextWeight: 0.7}
	h, err := hybrid.New(views, []float32{1, 0, 0, 1, 2, 0, 0, 2, 3, 1, -1, 3}, 2)
	if err != nil {
		t.Fatal(err)
	}
	views.Behaviour, err = hybrid.NewItemView(1.5, 1, []uint64{numeric.HashString("known")}, []uint16{0x3f00})
	if err != nil {
		t.Fatal(err)
	}
	items, err := hybrid.New(views, []float32{1, 0, 0, 1, 2, 0, 0, 2, 3, 1, -1, 3, 5, -5}, 2)
	if err != nil {
		t.Fatal(err)
	}
	own, err := hybrid.NewVectorMap([]float32{0, 0.5}, []float32{1, 2, 3, 4})
	if err != nil {
		t.Fatal(err)
	}
	seen, err := hybrid.NewItemView(0.5, 2, []uint64{numeric.HashString("known")}, []uint16{0x3f00, 0xbf00})
	if err != nil {
		t.Fatal(err)
	}
	views.Vectors = []hybrid.VectorView{{Name: "image", Input: 3, Map: own, Items: seen,
		Metric: []float32{1, 2, 0, 1}}}
	vectors, err := hybrid.New(views, []float32{1, 0, 0, 1, 2, 0, 0, 2, 3, 1, -1, 3, 5, -5, 1, 2, -2, 1}, 2)
	if err != nil {
		t.Fatal(err)
	}
	return []train.Encoder{l, w, b, h, items, vectors}
}

// encode returns the embeddings of texts, and then those of the same texts as a known item's.
func encode(t *testing.T, e train.Encoder) []float32 {
	t.Helper()
	n := len(texts) * e.Dim()
	out, ids := make([]float32, 2*n), slices.Repeat([]string{"known"}, len(texts))
	if err := errors.Join(e.Encode(texts, out[:n]), train.EncodeItems(e, ids, texts, nil, out[n:])); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSavedEncodersGiveTheSameEmbeddings(t *testing.T) {
	for _, e := range encoders(t) {
		store := new(memstore.Store)
		meta := Meta{Vectorizer: letters{}, Projection: firstFour{}, Seed: 7, Metrics: map[string]float64{"auc": 0.5}}
		if _, err := Save(t.Context(), store, "generations/000001/encoder", e, meta); err != nil {
			t.Fatal(err)
		}
		got, c, err := Load(t.Context(), store, "generations/000001/encoder", letters{}, firstFour{}, nil)
		if err != nil {
			t.Fatalf("%s: %v", e.Kind(), err)
		}
		if got.Kind() != e.Kind() || got.Dim() != e.Dim() || c.Seed != 7 || c.Kind != e.Kind() {
			t.Errorf("%s of %d dimensions came back as %s of %d, %+v", e.Kind(), e.Dim(), got.Kind(), got.Dim(), c)
		}
		if a, b := encode(t, e), encode(t, got); !slices.Equal(a, b) {
			t.Errorf("%s: embeddings %v, loaded %v", e.Kind(), a, b)
		}
		if h, is := got.(*hybrid.Encoder); is {
			for k, of := range h.Views().Vectors {
				if !reflect.DeepEqual(of, e.(*hybrid.Encoder).Views().Vectors[k]) {
					t.Errorf("the view of the vector %s came back as %+v", of.Name, of)
				}
			}
		}
	}
}

// What is stored beside an encoder is read back as it was, and is no part of the encoder.
func TestTensorsBesideAnEncoderComeBack(t *testing.T) {
	p := &xmc.Problem{Levels: []xmc.Level{{Clusters: 2}, {Clusters: 3, Parent: []int32{0, 0, 1}}}}
	m := &xmc.Matcher{Problem: p, Dim: 2, Weights: [][]float32{{1, 0, 0, 1}, {1, 0, 0.9, 0.1, 0, 1}},
		Bias: [][]float32{{1, 2}, {3, 4, 5}}}
	store := new(memstore.Store)
	if _, err := Save(t.Context(), store, "e", encoders(t)[2], Meta{Vectorizer: letters{},
		Tensors: m.Tensors()}); err != nil {
		t.Fatal(err)
	}
	object, err := store.Open(t.Context(), "e/"+modelName)
	if err != nil {
		t.Fatal(err)
	}
	a, err := safetensors.Open(object, object.Size())
	if err != nil {
		t.Fatal(err)
	}
	for level, clusters := range []int{2, 3} {
		heads, err := a.Float32(fmt.Sprintf("head.%d", level), clusters, 2)
		if err != nil || !slices.Equal(heads, m.Weights[level]) {
			t.Errorf("heads of level %d: %v (%v), want %v", level, heads, err, m.Weights[level])
		}
		bias, err := a.Float32(fmt.Sprintf("bias.%d", level), clusters)
		if err != nil || !slices.Equal(bias, m.Bias[level]) {
			t.Errorf("biases of level %d: %v (%v), want %v", level, bias, err, m.Bias[level])
		}
	}
	if parents, err := a.Int32("parent.1", 3); err != nil || !slices.Equal(parents, p.Levels[1].Parent) {
		t.Errorf("parents: %v (%v), want %v", parents, err, p.Levels[1].Parent)
	}
	if _, _, err := Load(t.Context(), store, "e", letters{}, nil, nil); err != nil {
		t.Errorf("the encoder beside them: %v", err)
	}
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	e := encoders(t)[1]
	for _, c := range []struct {
		name   string
		damage func(*testing.T, sink.Store)
		rank   train.Projection
		want   error
	}{
		{"never finished", func(t *testing.T, s sink.Store) { remove(t, s, "e/config.json") }, firstFour{},
			sink.ErrNotFound},
		{"model missing", func(t *testing.T, s sink.Store) { remove(t, s, "e/model.safetensors") }, firstFour{},
			ErrCorrupt},
		{"one bit flipped", func(t *testing.T, s sink.Store) {
			edit(t, s, "e/model.safetensors", func(b []byte) []byte { b[len(b)-1] ^= 1; return b })
		}, firstFour{}, ErrCorrupt},
		{"cut short", func(t *testing.T, s sink.Store) {
			edit(t, s, "e/model.safetensors", func(b []byte) []byte { return b[:len(b)-4] })
		}, firstFour{}, ErrCorrupt},
		{"configuration is no JSON", func(t *testing.T, s sink.Store) {
			edit(t, s, "e/config.json", func([]byte) []byte { return []byte("{") })
		}, firstFour{}, ErrCorrupt},
		{"newer version", func(t *testing.T, s sink.Store) {
			edit(t, s, "e/config.json", func(b []byte) []byte {
				return bytes.Replace(b, []byte(`"version": 1`), []byte(`"version": 2`), 1)
			})
		}, firstFour{}, ErrUnknown},
		{"a bert without model directory", func(t *testing.T, s sink.Store) {
			edit(t, s, "e/config.json", func(b []byte) []byte {
				return bytes.Replace(b, []byte(`"linear"`), []byte(`"bert"`), 1)
			})
		}, firstFour{}, ErrCorrupt},
		{"unknown kind", func(t *testing.T, s sink.Store) {
			edit(t, s, "e/config.json", func(b []byte) []byte {
				return bytes.Replace(b, []byte(`"linear"`), []byte(`"oracle"`), 1)
			})
		}, firstFour{}, ErrUnknown},
		{"other projection", func(*testing.T, sink.Store) {}, firstFive{}, ErrMismatch},
		{"no projection", func(*testing.T, sink.Store) {}, nil, ErrMismatch},
	} {
		store := new(memstore.Store)
		if _, err := Save(t.Context(), store, "e", e, Meta{Vectorizer: letters{}, Projection: firstFour{}}); err != nil {
			t.Fatal(err)
		}
		c.damage(t, store)
		if _, _, err := Load(t.Context(), store, "e", letters{}, c.rank, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}

// Every encoder that can be rotated gives its embeddings times the matrix, also after it was stored.
func TestRotatedEncodersComeBack(t *testing.T) {
	deep, err := bert.Open(os.DirFS("bert/testdata/tiny"), cpu.New(), bert.Options{Pooling: compute.Mean, MaxTokens: 12})
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range append(encoders(t)[1:3], deep) {
		want := encode(t, e)
		axes, err := numeric.PrincipalAxes(want, e.Dim())
		if err != nil {
			t.Fatal(err)
		}
		numeric.Rotate(want, axes, e.Dim())
		e.(interface{ Rotate(axes []float32) }).Rotate(axes)
		got := encode(t, e)
		for k := range want {
			if math.Abs(float64(got[k]-want[k])) > 1e-5 {
				t.Fatalf("%d, %s: number %d is %g, want %g", i, e.Kind(), k, got[k], want[k])
			}
		}
		store := new(memstore.Store)
		if _, err := Save(t.Context(), store, "e", e, Meta{Vectorizer: letters{}, Projection: firstFour{}}); err != nil {
			t.Fatal(err)
		}
		back, _, err := Load(t.Context(), store, "e", letters{}, firstFour{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if again := encode(t, back); !slices.Equal(again, got) {
			t.Errorf("%d, %s: embeddings %v, loaded %v", i, e.Kind(), got, again)
		}
	}
}

// A BERT beside n-grams and the text is stored with all of them.
func TestBERTWithNGramsComesBack(t *testing.T) {
	model, err := bert.Open(os.DirFS("bert/testdata/tiny"), cpu.New(),
		bert.Options{Pooling: compute.Mean, MaxTokens: 12})
	if err != nil {
		t.Fatal(err)
	}
	views := encoders(t)[3].(*hybrid.Encoder).Views()
	views.Model = model
	sample := make([]float32, len(texts)*views.Len())
	if err := views.WriteViews(nil, texts, train.FeaturesOf(views.Vectorizer, texts), sample); err != nil {
		t.Fatal(err)
	}
	join, err := hybrid.Join(sample, views.Len(), 2)
	if err != nil {
		t.Fatal(err)
	}
	e, err := hybrid.New(views, join, 2)
	if err != nil {
		t.Fatal(err)
	}
	store := new(memstore.Store)
	if _, err := Save(t.Context(), store, "e", e, Meta{Vectorizer: letters{}, Projection: firstFour{}}); err != nil {
		t.Fatal(err)
	}
	got, c, err := Load(t.Context(), store, "e", letters{}, firstFour{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := encode(t, e), encode(t, got); c.Kind != bert.Kind || !slices.Equal(a, b) ||
		slices.Equal(a, encode(t, encoders(t)[3])) {
		t.Errorf("%s: embeddings %v, loaded %v", c.Kind, a, b)
	}
	if _, _, err := Load(t.Context(), store, "e", letters{}, nil, nil); !errors.Is(err, ErrMismatch) {
		t.Errorf("loaded without a projection: %v", err)
	}
}

// Earlier versions added n-grams to the model's embedding, with and without a join to the text: such an
// encoder is refused, with a word on what to do.
func TestBERTOfAnEarlierVersionIsRefused(t *testing.T) {
	model, err := bert.Open(os.DirFS("bert/testdata/tiny"), cpu.New(), bert.Options{Pooling: compute.Mean, MaxTokens: 12})
	if err != nil {
		t.Fatal(err)
	}
	d := model.Dim()
	added := []safetensors.Tensor{
		{Name: "features", Shape: []int{1}, Int32: []int32{0}},
		{Name: "vectors", Shape: []int{1, d}, Float32: make([]float32, d)},
	}
	joined := append(slices.Clone(added),
		safetensors.Tensor{Name: "weights", Shape: []int{4, 2}, Float32: make([]float32, 8)},
		safetensors.Tensor{Name: "text_weight", Shape: []int{1}, Float32: []float32{1}},
		safetensors.Tensor{Name: joinName, Shape: []int{d + 4, d}, Float32: make([]float32, (d+4)*d)})
	for name, tensors := range map[string][]safetensors.Tensor{"added": added, "joined": joined} {
		store := new(memstore.Store)
		meta := Meta{Vectorizer: letters{}, Projection: firstFour{}, Tensors: tensors}
		if _, err := Save(t.Context(), store, "e", model, meta); err != nil {
			t.Fatal(err)
		}
		_, _, err := Load(t.Context(), store, "e", letters{}, firstFour{}, nil)
		if !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "a new store") {
			t.Errorf("%s: got %v, want %v and what to do", name, err, ErrUnknown)
		}
	}
}

// A BERT is stored with its model directory, of which every file is checked.
func TestBERTComesBack(t *testing.T) {
	dir := os.DirFS("bert/testdata/tiny")
	e, err := bert.Open(dir, cpu.New(), bert.Options{Pooling: compute.First, MaxTokens: 12})
	if err != nil {
		t.Fatal(err)
	}
	store := new(memstore.Store)
	if _, err := Save(t.Context(), store, "e", e, Meta{Vectorizer: letters{}, Projection: firstFour{}}); err != nil {
		t.Fatal(err)
	}
	got, c, err := Load(t.Context(), store, "e", letters{}, firstFour{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if o := got.(*bert.Encoder).Options(); o.Pooling != compute.First || o.MaxTokens != 12 {
		t.Errorf("options %+v", o)
	}
	if a, b := encode(t, e), encode(t, got); !slices.Equal(a, b) {
		t.Errorf("embeddings %v, loaded %v", a, b)
	}
	if c.Size() <= c.Model.Bytes || len(c.BERT.Files) < 3 {
		t.Errorf("configuration %+v", c)
	}
	for name := range c.BERT.Files {
		edit(t, store, "e/bert/"+name, func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
		if _, _, err := Load(t.Context(), store, "e", letters{}, firstFour{}, nil); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s damaged: got %v, want ErrCorrupt", name, err)
		}
		edit(t, store, "e/bert/"+name, func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	}
	remove(t, store, "e/bert/vocab.txt")
	if _, _, err := Load(t.Context(), store, "e", letters{}, firstFour{}, nil); !errors.Is(err, ErrCorrupt) {
		t.Errorf("without vocabulary: got %v, want ErrCorrupt", err)
	}
}

type firstFive struct{ firstFour }

func (firstFive) Dim() int { return 5 }

func remove(t *testing.T, s sink.Store, key string) {
	t.Helper()
	if err := s.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
}

func edit(t *testing.T, s sink.Store, key string, change func([]byte) []byte) {
	t.Helper()
	f, err := s.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	if err != nil {
		t.Fatal(err)
	}
	data = change(data)
	if err := s.Put(t.Context(), key, bytes.NewReader(data), int64(len(data))); err != nil {
		t.Fatal(err)
	}
}

// brokenStore refuses every Put after reading a little.
type brokenStore struct{ sink.Store }

func (brokenStore) Put(_ context.Context, _ string, r io.Reader, _ int64) error {
	_, _ = r.Read(make([]byte, 1))
	return io.ErrShortWrite
}

func TestSaveReportsAStoreThatFails(t *testing.T) {
	_, err := Save(t.Context(), brokenStore{new(memstore.Store)}, "e", encoders(t)[2], Meta{Vectorizer: letters{}})
	if !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v, want the store's error", err)
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(`{"magic":"giantstream-encoder","version":1,"kind":"bag","dim":256,"features":10,"rank":4,` +
		`"model":{"bytes":8,"crc32c":1}}`))
	f.Add([]byte(`{"magic":"giantstream-encoder","version":1,"dim":-1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parseConfig(data)
		if err == nil && (c.Dim < 1 || c.Features < 1) {
			t.Errorf("accepted %+v", c)
		}
		if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnknown) {
			t.Errorf("error of no kind: %v", err)
		}
	})
}
