package embeddingtopic

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/client"
	"giantstream/sink/embedding"
)

// Attributes are control records under a key of their own, on the partition of the node.
func TestAttributes(t *testing.T) {
	of := embedding.Attributes{NodeID: "B00X", Attributes: `{"brand":"A \u0026 B","price":19.5}`, EventTime: 1_700_000_000,
		Shard: 2, Seq: 17}
	m, err := EncodeAttributes(of)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"control":"attributes","node_id":"B00X","attributes":{"brand":"A \u0026 B","price":19.5},` +
		`"event_time":1700000000,"shard":2,"seq":17}`
	if string(m.Key) != "giantstream.control/attributes/B00X" || string(m.Value) != want ||
		m.WriterData != client.WithKey("B00X") || !IsControl(m) {
		t.Errorf("got key %s, %v, value\n%s\nwant\n%s", m.Key, m.WriterData, m.Value, want)
	}
	none, err := EncodeAttributes(embedding.Attributes{NodeID: "B00X"})
	if err != nil || none.Value != nil {
		t.Errorf("no attributes are a tombstone, got %q, %v", none.Value, err)
	}
	for _, one := range []embedding.Attributes{of, {NodeID: "B00X"}} {
		m, err := EncodeAttributes(one)
		if err != nil {
			t.Fatal(err)
		}
		if back, ok, err := DecodeAttributes(m); back != one || !ok || err != nil {
			t.Errorf("%+v came back as %+v, %v, %v", one, back, ok, err)
		}
		if _, ok, err := DecodeCompletion(m); ok || err != nil {
			t.Errorf("attributes are taken for a completion: %v", err)
		}
	}
	for _, bad := range []embedding.Attributes{{}, {NodeID: "\xff"}, {NodeID: "a", Attributes: "{"}} {
		if m, err := EncodeAttributes(bad); err == nil {
			t.Errorf("%+v became %s", bad, m.Value)
		}
	}
	if _, ok, err := DecodeAttributes(kafka.Message{Key: []byte("a"), Value: []byte("{}")}); ok || err != nil {
		t.Errorf("an embedding is taken for attributes: %v", err)
	}
}

func FuzzDecodeAttributes(f *testing.F) {
	m, err := EncodeAttributes(embedding.Attributes{NodeID: "a", Attributes: `{"x":["<",1]}`, Seq: 3})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(m.Key, m.Value)
	f.Add(m.Key, []byte(nil))
	f.Add(m.Key, []byte(`{"node_id":"a","attributes":null}`))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		m := kafka.Message{Key: key, Value: value, Headers: m.Headers}
		a, ok, err := DecodeAttributes(m)
		if err != nil || !ok {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("got %v, want ErrMalformed", err)
			}
			return
		}
		if a.Attributes != "" && !json.Valid([]byte(a.Attributes)) {
			t.Fatalf("not JSON: %s", a.Attributes)
		}
		again, err := EncodeAttributes(a)
		if err != nil {
			return // an id that is no UTF-8
		}
		if back, _, err := DecodeAttributes(again); err != nil || back.NodeID != a.NodeID {
			t.Fatalf("%+v came back as %+v, %v", a, back, err)
		}
	})
}
