package bert

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/cpu"
	"giantstream/train/encoders/bert/wordpiece"
	"giantstream/train/encoders/safetensors"
	"giantstream/train/numeric/blas"
)

// TestMain has products computed as the command does.
func TestMain(m *testing.M) {
	blas32.Use(blas.New())
	os.Exit(m.Run())
}

// tolerance is how far hidden states may be from the reference's.
const tolerance = 1e-4

func texts(t testing.TB) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "texts.json"))
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	if err := json.Unmarshal(data, &texts); err != nil {
		t.Fatal(err)
	}
	return texts
}

// miniLM is the directory of all-MiniLM-L6-v2.
func miniLM(t testing.TB) fs.FS {
	t.Helper()
	dir := os.Getenv("GIANTSTREAM_MINILM")
	if dir == "" {
		t.Skip("set GIANTSTREAM_MINILM to the folder of all-MiniLM-L6-v2 (docs/format/bert.md says where to get it)")
	}
	return os.DirFS(dir)
}

func tiny() fs.FS { return os.DirFS(filepath.Join("testdata", "tiny")) }

// golden opens what testdata/golden.py wrote with the reference.
func golden(t testing.TB, name string) *safetensors.Archive {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	a, err := safetensors.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func load(t testing.TB, dir fs.FS) *Model {
	t.Helper()
	m, err := Load(dir, backend(t))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func float32s(t testing.TB, a *safetensors.Archive, name string, shape ...int) []float32 {
	t.Helper()
	x, err := a.Float32(name, shape...)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// farthest is the largest difference.
func farthest(t testing.TB, got, want []float32) float64 {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d numbers, want %d", len(got), len(want))
	}
	var far float64
	for i, w := range want {
		d := math.Abs(float64(got[i]) - float64(w))
		if !(d <= far) {
			far = d
		}
	}
	return far
}

func TestHiddenStatesEqualTheReference(t *testing.T) {
	for _, c := range []struct {
		name   string
		dir    func(testing.TB) fs.FS
		golden string
		max    int
		whole  bool // the golden file has all rows, not first, middle and last
	}{
		{"random weights", func(testing.TB) fs.FS { return tiny() }, "tiny.safetensors", 40, true},
		{"all-MiniLM-L6-v2", miniLM, "minilm.safetensors", 128, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := c.dir(t)
			m := load(t, dir)
			tok, err := wordpiece.Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			want := golden(t, c.golden)
			texts, h := texts(t), m.Config().HiddenSize
			b := compute.Batch{Start: []int32{0}}
			for _, text := range texts {
				b.IDs = tok.Encode(text, c.max, b.IDs)
				b.Start = append(b.Start, int32(len(b.IDs)))
			}
			w := m.NewWorkspace(b.Rows(), b.Texts())
			read := func(x compute.Buffer, err error) []float32 {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				out := make([]float32, x.Len())
				if err := m.backend.Read(out, x); err != nil {
					t.Fatal(err)
				}
				return out
			}
			hidden := read(m.Forward(w, b))
			for i := range texts {
				from, to := int(b.Start[i]), int(b.Start[i+1])
				n := to - from
				if ids, err := want.Int32("ids."+strconv.Itoa(i), n); err != nil || !slices.Equal(ids, b.IDs[from:to]) {
					t.Fatalf("text %d: ids %v, want %v (%v)", i, b.IDs[from:to], ids, err)
				}
				rows := hidden[from*h : to*h]
				if !c.whole {
					rows = slices.Concat(rows[:h], rows[n/2*h:][:h], rows[(n-1)*h:])
				}
				far := farthest(t, rows, float32s(t, want, "rows."+strconv.Itoa(i), len(rows)/h, h))
				if far > tolerance {
					t.Errorf("text %d: hidden states differ by %g", i, far)
				}
				t.Logf("text %d, %d tokens: within %.1e", i, n, far)
			}
			if far := farthest(t, read(m.Pool(w, b, compute.Mean)), float32s(t, want, "mean", len(texts), h)); far > tolerance {
				t.Errorf("means differ by %g", far)
			}
			if far := farthest(t, read(m.Pool(w, b, compute.First)), float32s(t, want, "cls", len(texts), h)); far > tolerance {
				t.Errorf("poolers' outputs differ by %g", far)
			}
		})
	}
}

// directory is the tiny model in memory, its tensors renamed or dropped (the
// new name is "") and spread over files.
func directory(t testing.TB, files int, rename func(string) string) fstest.MapFS {
	t.Helper()
	d := fstest.MapFS{}
	for _, name := range []string{"config.json", "vocab.txt", "tokenizer_config.json"} {
		data, err := fs.ReadFile(tiny(), name)
		if err != nil {
			t.Fatal(err)
		}
		d[name] = &fstest.MapFile{Data: data}
	}
	m, err := safetensors.OpenModel(tiny())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	tensors := make([][]safetensors.Tensor, files)
	index := map[string]map[string]string{"weight_map": {}}
	for i, name := range m.Names() {
		shape, _ := m.Shape(name)
		x, err := m.Float32(name, shape...)
		if err != nil {
			t.Fatal(err)
		}
		if name = rename(name); name != "" {
			tensors[i%files] = append(tensors[i%files], safetensors.Tensor{Name: name, Shape: shape, Float32: x})
			index["weight_map"][name] = "part-" + strconv.Itoa(i%files)
		}
	}
	for i, part := range tensors {
		f, err := safetensors.New(part, nil)
		if err != nil {
			t.Fatal(err)
		}
		var data bytes.Buffer
		if _, err := f.WriteTo(&data); err != nil {
			t.Fatal(err)
		}
		d["part-"+strconv.Itoa(i)] = &fstest.MapFile{Data: data.Bytes()}
	}
	if files == 1 {
		d["model.safetensors"] = d["part-0"]
		return d
	}
	data, err := json.Marshal(index)
	if err != nil {
		t.Fatal(err)
	}
	d["model.safetensors.index.json"] = &fstest.MapFile{Data: data}
	return d
}

func same(name string) string { return name }

func TestDirectoriesOfOtherMaking(t *testing.T) {
	texts := texts(t)
	want := encode(t, open(t, tiny(), Options{Pooling: compute.Mean}), texts)
	for name, dir := range map[string]fs.FS{
		"a task model": directory(t, 1, func(s string) string { return "bert." + s }),
		"no pooler":    directory(t, 1, func(s string) string { return strings.Split(s, "pooler")[0] }),
		"three files":  directory(t, 3, same),
		"from TensorFlow": directory(t, 1, strings.NewReplacer("LayerNorm.weight", "LayerNorm.gamma",
			"LayerNorm.bias", "LayerNorm.beta").Replace),
	} {
		if got := encode(t, open(t, dir, Options{Pooling: compute.Mean}), texts); !slices.Equal(got, want) {
			t.Errorf("%s: other embeddings", name)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	config := func(change ...string) fs.FS {
		d := directory(t, 1, same)
		old := string(d["config.json"].Data)
		data := strings.NewReplacer(change...).Replace(old)
		if data == old {
			t.Fatalf("%v changes nothing", change)
		}
		d["config.json"] = &fstest.MapFile{Data: []byte(data)}
		return d
	}
	without := func(name string) fs.FS {
		d := directory(t, 1, same)
		delete(d, name)
		return d
	}
	for _, c := range []struct {
		name string
		dir  fs.FS
		want error
		says string
	}{
		{"no configuration", without("config.json"), fs.ErrNotExist, "config.json"},
		{"no weights", without("model.safetensors"), fs.ErrNotExist, "must be in safetensors"},
		{"no vocabulary", without("vocab.txt"), fs.ErrNotExist, "vocab.txt"},
		{"another model", config(`"bert"`, `"roberta"`), ErrUnsupported, `"roberta"`},
		{"relative positions", config(`"model_type"`, `"position_embedding_type": "relative_key", "model_type"`),
			ErrUnsupported, "relative_key"},
		{"another activation", config(`"gelu"`, `"silu"`), ErrUnsupported, `"silu"`},
		{"a decoder", config(`"model_type"`, `"is_decoder": true, "model_type"`), ErrUnsupported, "decoder"},
		{"quantized", config(`"model_type"`, `"quantization_config": {}, "model_type"`), ErrUnsupported, "quantized"},
		{"no JSON", config("{", ""), ErrInvalid, "config.json"},
		{"heads that do not divide", config(`"num_attention_heads": 4`, `"num_attention_heads": 5`), ErrInvalid,
			"multiple"},
		{"no layers", config(`"num_hidden_layers": 2`, `"num_hidden_layers": 0`), ErrInvalid, "num_hidden_layers"},
		{"a layer that is not there", config(`"num_hidden_layers": 2`, `"num_hidden_layers": 3`), ErrInvalid,
			"encoder.layer.2"},
		{"weights of another width", config(`"intermediate_size": 64`, `"intermediate_size": 60`), ErrInvalid,
			"intermediate.dense"},
		{"fewer vectors than pieces", config(`"vocab_size": 98`, `"vocab_size": 90`), ErrInvalid, "word_embeddings"},
		{"a norm missing", directory(t, 1, func(s string) string {
			return strings.TrimSuffix(s, "encoder.layer.1.output.LayerNorm.bias")
		}), ErrInvalid, "encoder.layer.1.output.LayerNorm.bias"},
	} {
		_, err := Open(c.dir, cpu.New(), Options{})
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %v that says %q", c.name, err, c.want, c.says)
		}
	}
}

func TestForwardRefusesWhatIsOutOfBounds(t *testing.T) {
	m := load(t, tiny())
	w := m.NewWorkspace(41, 2)
	for name, b := range map[string]compute.Batch{
		"no text":            {Start: []int32{0}},
		"an empty text":      {IDs: []int32{1}, Start: []int32{0, 0, 1}},
		"an id too large":    {IDs: []int32{98}, Start: []int32{0, 1}},
		"a negative id":      {IDs: []int32{-1}, Start: []int32{0, 1}},
		"a text too long":    {IDs: make([]int32, 41), Start: []int32{0, 41}},
		"too many texts":     {IDs: []int32{1, 1, 1}, Start: []int32{0, 1, 2, 3}},
		"too many tokens":    {IDs: make([]int32, 42), Start: []int32{0, 21, 42}},
		"starts of no batch": {IDs: []int32{1, 1}, Start: []int32{0, 1}},
	} {
		if _, err := m.Forward(w, b); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(`{"model_type":"bert"}`))
	f.Add([]byte(`{"model_type":"bert","hidden_size":32,"num_attention_heads":4,"layer_norm_eps":1e-5,` +
		`"quantization_config":null}`))
	f.Add([]byte(`{"model_type":"bert","hidden_size":-1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseConfig(data)
		if err != nil {
			if !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrUnsupported) {
				t.Errorf("error of no kind: %v", err)
			}
			return
		}
		if c.HiddenSize < 1 || c.HiddenSize%c.Heads != 0 || c.Layers < 1 || c.VocabSize < 1 {
			t.Errorf("accepted %+v", c)
		}
	})
}
