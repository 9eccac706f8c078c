package embeddingtopic

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"giantstream/internal/vector"
	"giantstream/sink/embedding"
)

func example() embedding.Record {
	return embedding.Record{NodeID: "B00X", Generation: 3, Vector: []float32{0.1, -2, 1e-7, 3.4e38, 16777216},
		EventTime: 1_700_000_000_000_001, Shard: 2, Seq: 17}
}

func TestEncodeJSON(t *testing.T) {
	m, err := JSON.Encode(example())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"node_id":"B00X","generation":3,"space":3,"dim":5,` +
		`"embedding":[0.1,-2,1e-07,3.4e+38,1.6777216e+07],"event_time":1700000000000001,"shard":2,"seq":17}`
	if string(m.Key) != "B00X" || string(m.Value) != want || len(m.Headers) != 0 {
		t.Errorf("got key %s, headers %v, value\n%s\nwant\n%s", m.Key, m.Headers, m.Value, want)
	}
}

func TestEncodeBinary(t *testing.T) {
	r := example()
	r.Vector = []float32{1, -2}
	m, err := Binary.Encode(r)
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
	const want = "generation=3 space=3 dim=2 event_time=1700000000000001 shard=2 seq=17"
	if got := strings.Join(headers, " "); got != want {
		t.Errorf("got headers %s, want %s", got, want)
	}
}

func TestEncodeNarrowTypes(t *testing.T) {
	r := example()
	r.Vector = []float32{0.25, -0.125, 0.0625, 0}
	for _, tt := range []struct {
		typ           embedding.Type
		json, headers string
		value         string
	}{
		{embedding.Float16, `"dim":4,"type":"float16","embedding":[0.25,-0.125,0.0625,0],`, "dim=4 type=float16",
			"\x00\x34\x00\xb0\x00\x2c\x00\x00"},
		{embedding.Int8, `"dim":4,"type":"int8","scale":0.0020165741,"embedding":[124,-62,31,0],`,
			"dim=4 type=int8 scale=0.0020165741", "\x7c\xc2\x1f\x00"},
	} {
		n := embedding.Format{Type: tt.typ}.Narrow(r)
		j, err := JSON.Encode(n)
		if err != nil || !strings.Contains(string(j.Value), tt.json) {
			t.Errorf("%s: got %s, %v, want in it %s", tt.typ, j.Value, err, tt.json)
		}
		b, err := Binary.Encode(n)
		var headers []string
		for _, h := range b.Headers {
			headers = append(headers, h.Key+"="+string(h.Value))
		}
		if got := strings.Join(headers, " "); err != nil || !strings.Contains(got, tt.headers) ||
			string(b.Value) != tt.value {
			t.Errorf("%s: got %s, %q, %v, want %s, %q", tt.typ, got, b.Value, err, tt.headers, tt.value)
		}
	}
}

func TestHalvesHaveShortDecimals(t *testing.T) {
	for h, s := range halves() {
		if h>>10 == 0x1F {
			continue
		}
		x, err := strconv.ParseFloat(s, 32)
		if err != nil || vector.Half(float32(x)) != uint16(h) {
			t.Fatalf("%#04x is written as %s, which reads back as %#04x", h, s, vector.Half(float32(x)))
		}
	}
}

func TestDecodeReturnsWhatWasEncoded(t *testing.T) {
	for name, change := range map[string]func(*embedding.Record){
		"plain":            func(*embedding.Record) {},
		"id to be escaped": func(r *embedding.Record) { r.NodeID = "a\"b\\c\n<ü>\x01" },
		"extreme floats": func(r *embedding.Record) {
			r.Vector = []float32{math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, 0,
				float32(math.Copysign(0, -1)), 1.0 / 3}
		},
		"a space that an earlier generation began": func(r *embedding.Record) { r.Space = 1 },
		"no event time": func(r *embedding.Record) { r.EventTime = -1 },
		"no text":       func(r *embedding.Record) { r.Status, r.Vector = embedding.NoText, nil },
		"neighbours": func(r *embedding.Record) {
			r.Status = embedding.FromNeighbours
			r.Vector = []float32{0.6, 0.8}
		},
		"float16": func(r *embedding.Record) {
			r.Vector = []float32{0.1, -2, 1e-7, 65504, 1.0 / 3, float32(math.Copysign(0, -1)), 0}
			*r = embedding.Format{Type: embedding.Float16}.Narrow(*r)
		},
		"int8": func(r *embedding.Record) {
			r.Vector = []float32{0.1, -0.2, 1e-7, 0.3, 0}
			*r = embedding.Format{Type: embedding.Int8}.Narrow(*r)
		},
		"int8 of neighbours": func(r *embedding.Record) {
			r.Status, r.Vector = embedding.FromNeighbours, []float32{0.6, -0.8}
			*r = embedding.Format{Type: embedding.Int8}.Narrow(*r)
		},
		"int8 without text": func(r *embedding.Record) {
			r.Status, r.Vector = embedding.NoText, nil
			*r = embedding.Format{Type: embedding.Int8, Dim: 2}.Narrow(*r)
		},
		"int8 of zeros": func(r *embedding.Record) {
			*r = embedding.Format{Type: embedding.Int8}.Narrow(embedding.Record{NodeID: "z", Vector: make([]float32, 3)})
		},
		"deleted": func(r *embedding.Record) { r.Deleted, r.Vector = true, nil },
	} {
		for _, f := range []Format{JSON, Binary} {
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
				got, err := Decode(m)
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
		for _, f := range []Format{JSON, Binary} {
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
		{"unknown type", kafka.Message{Key: []byte("a"),
			Value: []byte(`{"node_id":"a","dim":1,"type":"int4","embedding":[1]}`)}},
		{"no int8", kafka.Message{Key: []byte("a"),
			Value: []byte(`{"node_id":"a","dim":1,"type":"int8","scale":1,"embedding":[1.5]}`)}},
		{"too large for int8", kafka.Message{Key: []byte("a"),
			Value: []byte(`{"node_id":"a","dim":1,"type":"int8","scale":1,"embedding":[128]}`)}},
		{"negative scale", kafka.Message{Key: []byte("a"),
			Value: []byte(`{"node_id":"a","dim":1,"type":"int8","scale":-1,"embedding":[1]}`)}},
		{"too large for float16", kafka.Message{Key: []byte("a"),
			Value: []byte(`{"node_id":"a","dim":1,"type":"float16","embedding":[1e9]}`)}},
		{"NaN", kafka.Message{Key: []byte("a"), Value: []byte("\x00\x00\xc0\x7f"), Headers: header("dim", "1")}},
	} {
		if r, err := Decode(tt.m); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %+v, %v; want ErrMalformed", tt.name, r, err)
		}
	}
}

// What Decode accepts can be encoded again, and means the same.
func FuzzDecode(f *testing.F) {
	for _, format := range []Format{JSON, Binary} {
		m, err := format.Encode(example())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(m.Key, m.Value, len(m.Headers) > 0, []byte("5"), []byte("17"))
	}
	f.Add([]byte("a"), []byte(nil), true, []byte(""), []byte("-1"))
	f.Add([]byte("a"), []byte(`{"node_id":"a","dim":1,"embedding":[1e400]}`), false, []byte(nil), []byte(nil))
	f.Add([]byte("a"), []byte(`{"node_id":"a","dim":2,"type":"int8","scale":0.01,"embedding":[-128,3]}`), false,
		[]byte(nil), []byte(nil))
	f.Add([]byte("a"), []byte(`{"node_id":"a","dim":1,"embedding":[1],"shard":2666666617}`), false, []byte(nil),
		[]byte(nil))
	f.Add([]byte("a"), []byte(`{"node_id":"a","dim":2,"type":"float16","embedding":[0.1,3]}`), false, []byte(nil),
		[]byte(nil))
	f.Fuzz(func(t *testing.T, key, value []byte, binary bool, dim, seq []byte) {
		m := kafka.Message{Key: key, Value: value}
		if binary {
			m.Headers = []kafka.Header{{Key: "dim", Value: dim}, {Key: "seq", Value: seq}}
		}
		r, err := Decode(m)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("got %v, want ErrMalformed", err)
			}
			return
		}
		for _, format := range []Format{JSON, Binary} {
			again, err := format.Encode(r)
			if err != nil {
				continue // an id that is no UTF-8
			}
			if format == JSON && !r.Deleted && !json.Valid(again.Value) {
				t.Fatalf("not JSON: %s", again.Value)
			}
			if back, err := Decode(again); err != nil || !reflect.DeepEqual(back, r) {
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
		m, err := JSON.Encode(r)
		if err != nil {
			b.Fatal(err)
		}
		bytes += len(m.Value)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(bytes)/1e6/b.Elapsed().Seconds(), "MB/s")
}

func TestRecordsWithoutText(t *testing.T) {
	r := example()
	r.Status, r.Vector = embedding.NoText, nil
	m, err := JSON.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"node_id":"B00X","generation":3,"space":3,"dim":0,"embedding":[],"event_time":1700000000000001,` +
		`"shard":2,` +
		`"seq":17,"status":"no_text"}`
	if string(m.Value) != want {
		t.Errorf("got %s, want %s", m.Value, want)
	}
	m, err = Binary.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	// Compaction removes null values: an empty one is a record.
	if m.Value == nil || len(m.Value) > 0 {
		t.Errorf("the value is %v, want an empty one", m.Value)
	}
	// Clients that cannot tell empty from null still get the status.
	m.Value = nil
	if got, err := Decode(m); err != nil || got.Deleted || got.Status != embedding.NoText {
		t.Errorf("got %+v, %v", got, err)
	}
	for name, wrong := range map[string]embedding.Record{
		"no vector":      {NodeID: "a", Generation: 1},
		"vector":         {NodeID: "a", Generation: 1, Vector: []float32{1}, Status: embedding.NoText},
		"unknown status": {NodeID: "a", Generation: 1, Vector: []float32{1}, Status: "perhaps"},
	} {
		for _, f := range []Format{JSON, Binary} {
			if _, err := f.Encode(wrong); err == nil {
				t.Errorf("%s in %s: no error", name, f)
			}
		}
	}
}
