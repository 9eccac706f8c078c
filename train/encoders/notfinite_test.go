package encoders

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"math"
	"strings"
	"testing"

	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/train/encoders/bag"
	"giantstream/train/encoders/safetensors"
)

// A model with a number that is not finite is refused, by the name of its tensor, although its
// checksum is right.
func TestModelsThatAreNotFiniteAreRefused(t *testing.T) {
	for _, e := range encoders(t)[1:] {
		for _, value := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			store := new(memstore.Store)
			meta := Meta{Vectorizer: letters{}, Projection: firstFour{}}
			c, err := Save(t.Context(), store, "e", e, meta)
			if err != nil {
				t.Fatal(err)
			}
			model, err := sink.ReadAll(t.Context(), store, "e/"+modelName)
			if err != nil {
				t.Fatal(err)
			}
			for name, at := range floats(t, model) {
				bad := append([]byte{}, model...)
				binary.LittleEndian.PutUint32(bad[at:], math.Float32bits(float32(value)))
				edit(t, store, "e/"+modelName, func([]byte) []byte { return bad })
				c.Model.CRC32C = crc32.Checksum(bad, castagnoli)
				config, err := json.Marshal(c)
				if err != nil {
					t.Fatal(err)
				}
				edit(t, store, "e/"+configName, func([]byte) []byte { return config })
				_, _, err = Load(t.Context(), store, "e", letters{}, firstFour{}, nil)
				if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), name) {
					t.Errorf("%s with %v in %s: %v", e.Kind(), value, name, err)
				}
			}
		}
	}
}

// floats returns where the first number of every float tensor of a file lies.
func floats(t *testing.T, file []byte) map[string]int {
	t.Helper()
	size := int(binary.LittleEndian.Uint64(file))
	var header map[string]struct {
		DType   string `json:"dtype"`
		Offsets [2]int `json:"data_offsets"`
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(file[8:8+size], &all); err != nil {
		t.Fatal(err)
	}
	delete(all, "__metadata__")
	tensors, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(tensors, &header); err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for name, e := range header {
		if e.DType == "F32" {
			out[name] = 8 + size + e.Offsets[0]
		}
	}
	if len(out) == 0 {
		t.Fatal("no tensor of floats")
	}
	return out
}

// An encoder whose training came to no numbers is not stored.
func TestEncodersThatAreNotFiniteAreNotSaved(t *testing.T) {
	m, err := bag.NewModel([]int32{0, 3}, []float32{1, 2, float32(math.NaN()), 4}, 10, 2)
	if err != nil {
		t.Fatal(err)
	}
	e, err := bag.NewEncoder(letters{}, m)
	if err != nil {
		t.Fatal(err)
	}
	store := new(memstore.Store)
	_, err = Save(t.Context(), store, "e", e, Meta{Vectorizer: letters{}})
	if !errors.Is(err, safetensors.ErrNotFinite) || !strings.Contains(err.Error(), `"vectors"`) {
		t.Errorf("got %v, want ErrNotFinite with the name of the tensor", err)
	}
	if _, _, err := Load(t.Context(), store, "e", letters{}, nil, nil); !errors.Is(err, sink.ErrNotFound) {
		t.Errorf("it is there: %v", err)
	}
}
