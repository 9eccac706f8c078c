package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"testing"
	"testing/fstest"
)

// half is a file with one tensor "h" of 16-bit numbers.
func half(dtype string, bits ...uint16) []byte {
	header := fmt.Sprintf(`{"h":{"dtype":%q,"shape":[%d],"data_offsets":[0,%d]}}`, dtype, len(bits), 2*len(bits))
	data := file(header, 0)
	for _, b := range bits {
		data = binary.LittleEndian.AppendUint16(data, b)
	}
	return data
}

func TestHalfPrecision(t *testing.T) {
	for _, c := range []struct {
		dtype string
		bits  []uint16
		want  []float32
	}{
		{"F16", []uint16{0, 0x3c00, 0xc000, 0x3555, 0x7bff, 0x0400, 0x0001, 0x83ff},
			[]float32{0, 1, -2, 0.333251953125, 65504, 0x1p-14, 0x1p-24, -0x1p-24 * 1023}},
		{"BF16", []uint16{0, 0x3f80, 0xc000, 0x3eab, 0x7f7f, 0x0001},
			[]float32{0, 1, -2, 0.333984375, 0x1.fep127, 0x1p-133}},
	} {
		data := half(c.dtype, c.bits...)
		a, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := a.Float32("h", len(c.bits)); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v (%v), want %v", c.dtype, got, err, c.want)
		}
		if _, err := a.Int32("h", len(c.bits)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s as I32: %v, want ErrInvalid", c.dtype, err)
		}
	}
	for dtype, refused := range map[string][]uint16{
		"F16": {0x7c00, 0xfc00, 0x7c01, 0xfe00}, "BF16": {0x7f80, 0xff80, 0x7fc0},
	} {
		for _, bits := range refused {
			data := half(dtype, 0, bits)
			a, err := Open(bytes.NewReader(data), int64(len(data)))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := a.Float32("h", 2); !errors.Is(err, ErrNotFinite) || !errors.Is(err, ErrInvalid) {
				t.Errorf("%s %04x: %v, want ErrNotFinite", dtype, bits, err)
			}
		}
	}
	for _, bits := range []uint16{0x7c01, 0xfe00} {
		if f := fromFloat16(bits); f == f {
			t.Errorf("%#04x is %v, want NaN", bits, f)
		}
	}
	if bits := math.Float32bits(fromFloat16(0x8000)); bits != 1<<31 {
		t.Errorf("-0 is %#08x", bits)
	}
}

// model is a directory with tensor a in one file and b in another.
func model(t testing.TB) fstest.MapFS {
	t.Helper()
	return fstest.MapFS{
		"one.safetensors": {Data: encode(t, []Tensor{{Name: "a", Shape: []int{2}, Float32: []float32{1, 2}}}, nil)},
		"two.safetensors": {Data: encode(t, []Tensor{{Name: "b", Shape: []int{1}, Float32: []float32{3}}}, nil)},
		indexName: {Data: []byte(`{"metadata":{"total_size":12},"weight_map":{"a":"one.safetensors",` +
			`"b":"two.safetensors"}}`)},
	}
}

func TestModelOfSeveralFiles(t *testing.T) {
	for name, dir := range map[string]fs.FS{
		"two files": model(t),
		"one file": fstest.MapFS{modelName: {Data: encode(t, []Tensor{
			{Name: "a", Shape: []int{2}, Float32: []float32{1, 2}}, {Name: "b", Shape: []int{1}, Float32: []float32{3}},
		}, nil)}},
	} {
		m, err := OpenModel(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Names(); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("%s: tensors %v", name, got)
		}
		if got, err := m.Float32("b", 1); err != nil || !slices.Equal(got, []float32{3}) {
			t.Errorf("%s: b is %v (%v)", name, got, err)
		}
		if _, ok := m.Shape("c"); ok {
			t.Errorf("%s: there is no tensor c", name)
		}
		if _, err := m.Float32("c", 1); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: c: %v, want ErrInvalid", name, err)
		}
		if err := m.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpenModelRefuses(t *testing.T) {
	index := func(s string) func(fstest.MapFS) {
		return func(d fstest.MapFS) { d[indexName] = &fstest.MapFile{Data: []byte(s)} }
	}
	for _, c := range []struct {
		name   string
		damage func(fstest.MapFS)
		want   error
	}{
		{"nothing there", func(d fstest.MapFS) { delete(d, indexName) }, fs.ErrNotExist},
		{"a file missing", func(d fstest.MapFS) { delete(d, "two.safetensors") }, fs.ErrNotExist},
		{"a file cut short", func(d fstest.MapFS) {
			d["two.safetensors"].Data = d["two.safetensors"].Data[:20]
		}, ErrInvalid},
		{"index is no JSON", index("{"), ErrInvalid},
		{"index is empty", index("{}"), ErrInvalid},
		{"a file elsewhere", index(`{"weight_map":{"a":"../one.safetensors"}}`), ErrInvalid},
		{"a tensor in another file", index(`{"weight_map":{"a":"two.safetensors","b":"two.safetensors"}}`), ErrInvalid},
		{"a tensor that no file has",
			index(`{"weight_map":{"a":"one.safetensors","b":"two.safetensors","c":"two.safetensors"}}`), ErrInvalid},
	} {
		d := model(t)
		c.damage(d)
		if _, err := OpenModel(d); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}

func FuzzOpenModel(f *testing.F) {
	f.Add([]byte(`{"weight_map":{"a":"one.safetensors","b":"two.safetensors"}}`))
	f.Add([]byte(`{"weight_map":{"a":"/etc/hosts","b":""}}`))
	f.Fuzz(func(t *testing.T, index []byte) {
		d := model(t)
		d[indexName].Data = index
		m, err := OpenModel(d)
		if err != nil {
			return
		}
		for _, name := range m.Names() {
			shape, _ := m.Shape(name)
			if _, err := m.Float32(name, shape...); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
