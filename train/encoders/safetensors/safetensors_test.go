package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

func encode(t testing.TB, tensors []Tensor, meta map[string]string) []byte {
	t.Helper()
	f, err := New(tensors, meta)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if n, err := f.WriteTo(&b); err != nil || n != f.Size() || int64(b.Len()) != n {
		t.Fatalf("wrote %d bytes of %d, buffer has %d: %v", n, f.Size(), b.Len(), err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	large := make([]float32, 100_003) // more than one chunk
	for i := range large {
		large[i] = float32(i) / 7
	}
	data := encode(t, []Tensor{
		{Name: "b", Shape: []int{2, 2}, Float32: []float32{1, -2, math.MaxFloat32, 1e-40}},
		{Name: "a", Shape: []int{3}, Int32: []int32{1, -1, math.MaxInt32}},
		{Name: "empty", Shape: []int{0, 4}},
		{Name: "large", Shape: []int{len(large)}, Float32: large},
	}, map[string]string{"kind": "test"})
	a, err := Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Names(); !slices.Equal(got, []string{"a", "b", "empty", "large"}) {
		t.Errorf("names %v", got)
	}
	if !bytes.Contains(data, []byte(`"__metadata__":{"kind":"test"}`)) {
		t.Error("the metadata is not in the header")
	}
	if got, err := a.Float32("b", 2, 2); err != nil || !slices.Equal(got, []float32{1, -2, math.MaxFloat32, 1e-40}) {
		t.Errorf("b: %v %v", got, err)
	}
	if got, err := a.Int32("a", 3); err != nil || !slices.Equal(got, []int32{1, -1, math.MaxInt32}) {
		t.Errorf("a: %v %v", got, err)
	}
	if got, err := a.Float32("large", len(large)); err != nil || !slices.Equal(got, large) {
		t.Errorf("large differs (%v)", err)
	}
	for _, bad := range [][]int{{4}, {2, 3}, nil} {
		if _, err := a.Float32("b", bad...); !errors.Is(err, ErrInvalid) {
			t.Errorf("shape %v of b: %v, want ErrInvalid", bad, err)
		}
	}
	if _, err := a.Int32("b", 2, 2); !errors.Is(err, ErrInvalid) {
		t.Errorf("b as I32: %v, want ErrInvalid", err)
	}
}

func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func TestOpenRefusesWhatIsNotWhole(t *testing.T) {
	good := `{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`
	for name, data := range map[string][]byte{
		"nothing":             {},
		"header too long":     binary.LittleEndian.AppendUint64(nil, math.MaxUint64),
		"no JSON":             file(`hello`, 0),
		"an array":            file(`[]`, 0),
		"tail after the JSON": file(`{} {}`, 0),
		"truncated data":      file(good, 7),
		"bytes left over":     file(good, 9),
		"a name twice": file(strings.Replace(good, `}}`,
			`},"a":{"dtype":"F32","shape":[],"data_offsets":[8,12]}}`, 1), 12),
		"overlap": file(strings.Replace(good, `}}`,
			`},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 1), 8),
		"negative shape":    file(`{"a":{"dtype":"F32","shape":[-1,-2],"data_offsets":[0,8]}}`, 8),
		"overflowing shape": file(`{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}`, 0),
		"unknown type":      file(`{"a":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}}`, 8),
	} {
		if _, err := Open(bytes.NewReader(data), int64(len(data))); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
}

func TestNewRefusesWrongShapes(t *testing.T) {
	for _, tensors := range [][]Tensor{
		{{Name: "a", Shape: []int{3}, Float32: []float32{1}}},
		{{Name: "", Shape: []int{1}, Float32: []float32{1}}},
		{{Name: "a", Shape: []int{1}, Float32: []float32{1}}, {Name: "a", Shape: []int{1}, Float32: []float32{2}}},
		{{Name: metadataKey, Shape: []int{1}, Float32: []float32{1}}},
	} {
		if _, err := New(tensors, nil); err == nil {
			t.Errorf("%v was accepted", tensors)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(encode(f, []Tensor{{Name: "a", Shape: []int{2}, Float32: []float32{1, 2}}, {Name: "i", Shape: []int{1},
		Int32: []int32{3}}}, map[string]string{"k": "v"}))
	f.Add(file(`{"a":{"dtype":"F16","shape":[2,2],"data_offsets":[0,8]}}`, 8))
	f.Add(half("BF16", 1, 2))
	f.Add(file(`{}`, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		for _, name := range a.Names() {
			shape, _ := a.Shape(name)
			for _, err := range []error{second(a.Float32(name, shape...)), second(a.Int32(name, shape...))} {
				if err != nil && !errors.Is(err, ErrInvalid) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }
