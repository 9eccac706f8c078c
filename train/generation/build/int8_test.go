package build

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"giantstream/internal/race"
	"giantstream/sink/memstore"
	"giantstream/train/encoders"
	"giantstream/train/encoders/bert"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
	"giantstream/train/internal/graphtest"
)

// A generation keeps the precision that it was built with, whatever later settings say, and a program
// that does not know int8 refuses its encoder. The next generation has the new precision.
func TestPrecisionBelongsToTheGeneration(t *testing.T) {
	race.SkipComputing(t)
	store, log := &memstore.Store{}, graphOf(300)
	texts := []string{graphtest.Rows(300, topicCount)[0].Text, graphtest.Rows(300, topicCount)[1].Text}
	var vectors [][]float32
	for i, precision := range []bert.Precision{"", bert.Int8} {
		b := plainBERT(store)
		b.Settings.Precision = precision
		doc := buildWith(t, b, int64(i+1), log, nil)
		if doc.Settings.Precision != precision {
			t.Errorf("generation %d was built with precision %q, its document says %q", i+1, precision,
				doc.Settings.Precision)
		}
		g, err := generation.Open(t.Context(), store, doc, nil)
		if err != nil {
			t.Fatal(err)
		}
		z := make([]float32, len(texts)*g.Encoder.Dim())
		if err := g.Encoder.Encode(texts, z); err != nil {
			t.Fatal(err)
		}
		vectors = append(vectors, z)
	}
	if slices.Equal(vectors[0], vectors[1]) {
		t.Error("both precisions give the same bits: nothing was quantized")
	}
	key := generation.Prefix(2) + generation.EncoderName + "/config.json"
	config := objects(t, store)[key]
	if !bytes.Contains(config, []byte(`"version": 2`)) || !bytes.Contains(config, []byte(`"precision": "int8"`)) {
		t.Errorf("the encoder's configuration does not tell its precision: %s", config)
	}
	if first := objects(t, store)[generation.Prefix(1)+generation.EncoderName+"/config.json"]; !bytes.Contains(first,
		[]byte(`"version": 1`)) ||
		bytes.Contains(first, []byte("precision")) {
		t.Errorf("an encoder in float32 is stored otherwise than before: %s", first)
	}
	for _, broken := range [][2]string{{`"version": 2`, `"version": 1`}, {`"precision": "int8"`,
		`"precision": "int4"`}} {
		data := bytes.Replace(config, []byte(broken[0]), []byte(broken[1]), 1)
		if err := store.Put(t.Context(), key, bytes.NewReader(data), int64(len(data))); err != nil {
			t.Fatal(err)
		}
		_, _, err := encoders.Load(t.Context(), store, generation.Prefix(2)+generation.EncoderName, nil, nil, nil)
		if !errors.Is(err, encoders.ErrCorrupt) && !errors.Is(err, encoders.ErrUnknown) {
			t.Errorf("%s instead of %s: %v", broken[1], broken[0], err)
		}
	}
}

func TestPrecisionIsChecked(t *testing.T) {
	s := plainBERT(&memstore.Store{}).Settings
	s.Precision = "int4"
	if err := s.Validate(); err == nil {
		t.Error("the precision int4 was accepted")
	}
	if err := (fit.Settings{Precision: bert.Int8}).Precision.Validate(); err != nil {
		t.Error(err)
	}
}
