package embedding_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"giantstream/sink/embedding"
)

func example() embedding.Record {
	return embedding.Record{NodeID: "B00X", Generation: 3, Vector: []float32{0.1, -2, 1e-7, 3.4e38, 16777216},
		EventTime: 1_700_000_000_000_001, Shard: 2, Seq: 17}
}

func TestEncodeJSON(t *testing.T) {
	m, err := embedding.JSON.Encode(example())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"node_id":"B00X","generation":3,"dim":5,"embedding":[0.1,-2,1e-07,3.4e+38,1.6777216e+07],` +
		`"event_time":1700000000000001,"shard":2,"seq":17}`
	if string(m.Key) != "B00X" || string(m.Value) != want || len(m.Headers) != 0 {
		t.Errorf("got key %s, headers %v, value\n%s\nwant\n%s", m.Key, m.Headers, m.Value, want)
	}
}

func TestEncodeBinary(t *testing.T) {
	r := example()
	r.Vector = []float32{1, -2}
	m, err := embedding.Binary.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	if want := "\x00\x00\x80\x3f\x00\x00\x00\xc0"; string(m.Value) != want {
		t.Errorf("got value %q, want %q", m.Value, want)
	}
	var headers []string
	for _, h := range m.Headers {
		headers = append(headers, h.Key+"="+string(h.Value))
	}
	if got, want := strings.Join(headers, " "), "generation=3 dim=2 event_time=1700000000000001 shard=2 seq=17"; got != want {
		t.Errorf("got headers %s, want %s", got, want)
	}
}

func TestDecodeReturnsWhatWasEncoded(t *testing.T) {
	for name, change := range map[string]func(*embedding.Record){
		"plain":            func(*embedding.Record) {},
		"id to be escaped": func(r *embedding.Record) { r.NodeID = "a\"b\\c\n<ü>\x01" },
		"extreme floats": func(r *embedding.Record) {
			r.Vector = []float32{math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, 0, float32(math.Copysign(0, -1)), 1.0 / 3}
		},
		"no event time": func(r *embedding.Record) { r.EventTime = -1 },
		"deleted":       func(r *embedding.Record) { r.Deleted, r.Vector = true, nil },
	} {
		for _, f := range []embedding.Format{embedding.JSON, embedding.Binary} {
			t.Run(string(f)+"/"+name, func(t *testing.T) {
				r := example()
				change(&r)
				m, err := f.Encode(r)
				if err != nil {
					t.Fatal(err)
				}
				if r.Deleted != (m.Value == nil) {
					t.Errorf("value is nil: %t, want %t: only tombstones have none", m.Value == nil, r.Deleted)
				}
				got, err := embedding.Decode(m)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(got, r) {
					t.Errorf("got %+v, want %+v", got, r)
				}
				again, err := f.Encode(got)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(again, m) {
					t.Errorf("the same record gave %+v and %+v", m, again)
				}
			})
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	for name, change := range map[string]func(*embedding.Record){
		"NaN":                 func(r *embedding.Record) { r.Vector[1] = float32(math.NaN()) },
		"infinity":            func(r *embedding.Record) { r.Vector[1] = float32(math.Inf(1)) },
		"no vector":           func(r *embedding.Record) { r.Vector = nil },
		"no id":               func(r *embedding.Record) { r.NodeID = "" },
		"id that is no UTF-8": func(r *embedding.Record) { r.NodeID = "\xff" },
	} {
		for _, f := range []embedding.Format{embedding.JSON, embedding.Binary} {
			r := example()
			change(&r)
			if _, err := f.Encode(r); err == nil {
				t.Errorf("%s, %s: no error", f, name)
			}
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	header := func(key, value string) []kafka.Header { return []kafka.Header{{Key: key, Value: []byte(value)}} }
	for _, tt := range []struct {
		name string
		m    kafka.Message
	}{
		{"no key", kafka.Message{Value: []byte(`{}`)}},
		{"no JSON", kafka.Message{Key: []byte("a"), Value: []byte(`{`)}},
		{"another node's", kafka.Message{Key: []byte("a"), Value: []byte(`{"node_id":"b","dim":1,"embedding":[1]}`)}},
		{"wrong dim", kafka.Message{Key: []byte("a"), Value: []byte(`{"node_id":"a","dim":2,"embedding":[1]}`)}},
		{"no vector", kafka.Message{Key: []byte("a"), Value: []byte(`{"node_id":"a"}`)}},
		{"bytes do not fit dim", kafka.Message{Key: []byte("a"), Value: []byte("1234"), Headers: header("dim", "2")}},
		{"dim is no number", kafka.Message{Key: []byte("a"), Value: []byte("1234"), Headers: header("dim", "one")}},
		{"dim is huge", kafka.Message{Key: []byte("a"), Value: []byte("1234"), Headers: header("dim", "1000000000000")}},
		{"NaN", kafka.Message{Key: []byte("a"), Value: []byte("\x00\x00\xc0\x7f"), Headers: header("dim", "1")}},
	} {
		if r, err := embedding.Decode(tt.m); !errors.Is(err, embedding.ErrMalformed) {
			t.Errorf("%s: got %+v, %v; want ErrMalformed", tt.name, r, err)
		}
	}
}

// What Decode accepts can be encoded again, and means the same.
func FuzzDecode(f *testing.F) {
	for _, format := range []embedding.Format{embedding.JSON, embedding.Binary} {
		m, err := format.Encode(example())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(m.Key, m.Value, len(m.Headers) > 0, []byte("5"), []byte("17"))
	}
	f.Add([]byte("a"), []byte(nil), true, []byte(""), []byte("-1"))
	f.Add([]byte("a"), []byte(`{"node_id":"a","dim":1,"embedding":[1e400]}`), false, []byte(nil), []byte(nil))
	f.Fuzz(func(t *testing.T, key, value []byte, binary bool, dim, seq []byte) {
		m := kafka.Message{Key: key, Value: value}
		if binary {
			m.Headers = []kafka.Header{{Key: "dim", Value: dim}, {Key: "seq", Value: seq}}
		}
		r, err := embedding.Decode(m)
		if err != nil {
			if !errors.Is(err, embedding.ErrMalformed) {
				t.Fatalf("got %v, want ErrMalformed", err)
			}
			return
		}
		for _, format := range []embedding.Format{embedding.JSON, embedding.Binary} {
			again, err := format.Encode(r)
			if err != nil {
				continue // an id that is no UTF-8
			}
			if format == embedding.JSON && !r.Deleted && !json.Valid(again.Value) {
				t.Fatalf("not JSON: %s", again.Value)
			}
			if back, err := embedding.Decode(again); err != nil || !reflect.DeepEqual(back, r) {
				t.Fatalf("%s: %+v came back as %+v, %v", format, r, back, err)
			}
		}
	})
}

func BenchmarkEncodeJSON(b *testing.B) {
	r := example()
	r.Vector = make([]float32, 256)
	for i := range r.Vector {
		r.Vector[i] = float32(math.Sin(float64(i + 1)))
	}
	bytes := 0
	for b.Loop() {
		m, err := embedding.JSON.Encode(r)
		if err != nil {
			b.Fatal(err)
		}
		bytes += len(m.Value)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(bytes)/1e6/b.Elapsed().Seconds(), "MB/s")
}
