package decode_test

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"giantstream/ingest/decode"
	"giantstream/stream/mutation"
)

func vectorOf(t testing.TB, s string) decode.Vector {
	t.Helper()
	v, err := decode.ParseVector(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// encoded is the base64 of float32s.
func encoded(numbers ...float32) string {
	var b []byte
	for _, x := range numbers {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}

func vectorDecoder(t testing.TB) *decode.Decoder {
	t.Helper()
	d, err := decode.Nodes(decode.NodeMapping{ID: "id", Text: []string{"text"}, Deleted: "deleted",
		Edges:   []decode.EdgePath{{Path: "edges[*]"}},
		Vectors: []decode.Vector{vectorOf(t, "text=emb.text:2"), vectorOf(t, "image=image:3:float16")}}, attributeLimits, 1)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A vector in any notation becomes the same numbers, and one that is absent is none.
func TestVectorsOfAnyNotation(t *testing.T) {
	d := vectorDecoder(t)
	image := mutation.Vector{Name: "image", Precision: mutation.Float16, Data: "\x00\x3c\x00\xc0\x00\x00"} // 1, -2, 0
	text := mutation.Vector{Name: "text", Precision: mutation.Float32, Data: "\x00\x00\x80\x3f\x00\x00\x00\x3f"}
	for _, tt := range []struct {
		value string
		want  []mutation.Vector
	}{
		{`{"id":"a","image":[1,-2,0]}`, []mutation.Vector{image}},
		{`{"id":"a","image":[ 1.0 , -0.2e1,-0 ],"edges":["b","c"]}`, []mutation.Vector{image}},
		{`{"id":"a","image":"` + encoded(1, -2, 0) + `"}`, []mutation.Vector{image}},
		{`{"id":"a","image":{"base64":"` + encoded(1, -2, 0) + `"}}`, []mutation.Vector{image}},
		{`{"id":"a","emb":{"text":"\u0000\u0000\u0000@\u0000\u0000\u0000?"}}`, []mutation.Vector{{Name: "text",
			Precision: mutation.Float32, Data: "\x00\x00\x00\x40\x00\x00\x00\x3f"}}}, // binary that is UTF-8
		{`{"id":"a","image":"[1, -2, 1e-9]"}`, []mutation.Vector{image}},
		{`{"id":"a","image":[1,-2,-1e-9]}`, []mutation.Vector{image}}, // -0 as float16
		{`{"id":"a","emb":{"text":[1,0.5]},"image":[1,-2,0]}`, []mutation.Vector{image, text}},
		{`{"id":"a","emb":{"text":[1,0.5]},"image":null}`, []mutation.Vector{text}},
		{`{"id":"a","image":"","text":"t"}`, nil},
		{`{"id":"a","deleted":true,"image":[1]}`, nil},
	} {
		got, fault := d.Decode(decode.Record{Value: []byte(tt.value), Time: time.Unix(7, 0)}, nil)
		if fault != nil || len(got) != 1 || !got[0].HasVectors || fmt.Sprint(got[0].Vectors) != fmt.Sprint(tt.want) {
			t.Errorf("%s:\n got %+v, %v\nwant %q", tt.value, got, fault, tt.want)
		}
	}
	got, fault := d.Decode(decode.Record{Key: []byte("a")}, nil)
	if fault != nil || len(got) != 1 || !got[0].HasVectors || got[0].Vectors != nil || got[0].Op != mutation.DeleteNode {
		t.Errorf("a null value: %+v, %v", got, fault)
	}
}

// What is no vector is a dead letter, and its message says which vector, what it must be and what was found.
func TestBadVectors(t *testing.T) {
	d := vectorDecoder(t)
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, tt := range []struct {
		value string
		code  decode.Code
		words string
	}{
		{`[1,2]`, decode.VectorLength, "vector image has 2 numbers; it must have 3"},
		{`[1,2,3,4]`, decode.VectorLength, "has 4 numbers; it must have 3"},
		{`[]`, decode.VectorLength, "has 0 numbers"},
		{`"` + encoded(1, 2, 3, 4) + `"`, decode.VectorLength, "has 4 numbers"},
		{`"AAAA"`, decode.VectorLength, "has 3 bytes; it must have 12"},
		{`[1,null,3]`, decode.VectorNotFinite, "number 1 of vector image is null"},
		{`[1,2,{"float":"Infinity"}]`, decode.VectorNotFinite, "number 2"},
		{`"[1,NaN,3]"`, decode.VectorNotFinite, "number 1 of vector image is NaN"},
		{`"` + encoded(nan, 2, 3) + `"`, decode.VectorNotFinite, "number 0 of vector image is NaN"},
		{`"` + encoded(1, 2, inf) + `"`, decode.VectorNotFinite, "is -Inf; all 3"},
		{`[0,0,0]`, decode.VectorZero, "all 3 numbers of vector image are 0 as float16"},
		{`[0,1e-9,-0]`, decode.VectorZero, "are 0 as float16"},
		{`[1,70000,3]`, decode.VectorOverflow, `number 1 of vector image is "70000", which is too large for float16`},
		{`[1,1e39,3]`, decode.VectorOverflow, `number 1 of vector image is "1e39"`},
		{`"no base64!"`, decode.BadType, "a list of 3 numbers, or the base64"},
		{`"[1,2"`, decode.BadType, "a list without end"},
		{`[1,"2",3]`, decode.BadType, `a list with`},
		{`[[1,2,3]]`, decode.BadType, "a list with"},
		{`[1,2,]`, decode.BadJSON, ""},
		{`"[1,,2]"`, decode.BadType, `a list with ""`},
		{`7`, decode.BadType, "vector image is a number"},
		{`{"a":1}`, decode.BadType, "vector image is an object"},
	} {
		got, fault := d.Decode(decode.Record{Value: []byte(`{"id":"a","image":` + tt.value + `}`)}, nil)
		if fault == nil || fault.Code != tt.code || !strings.Contains(fault.Message, tt.words) || len(got) > 0 {
			t.Errorf("%s: %+v, %v, want %s: %s", tt.value, got, fault, tt.code, tt.words)
		}
	}
}

// A topic of attributes may have vectors alone. Its records say nothing of attributes then.
func TestVectorsOfATopic(t *testing.T) {
	for _, attributes := range [][]decode.Attribute{nil, {attribute(t, "price:number")}} {
		d, err := decode.Attributes(decode.AttributesMapping{ID: "id", Attributes: attributes,
			Vectors: []decode.Vector{vectorOf(t, "image=v:1")}}, 3, attributeLimits, 1)
		if err != nil {
			t.Fatal(err)
		}
		none := ""
		if attributes != nil {
			none = mutation.NoAttributes
		}
		for value, n := range map[string]int{`{"id":"a","v":[1]}`: 1, `{"id":"a"}`: 0, "": 0} {
			r := decode.Record{Key: []byte("a"), Value: []byte(value)}
			if value == "" {
				r.Value = nil
			}
			got, fault := d.Decode(r, nil)
			if fault != nil || len(got) != 1 || got[0].Op != mutation.SetAttributes || got[0].Attributes != none ||
				!got[0].HasVectors || len(got[0].Vectors) != n {
				t.Errorf("%s: %+v, %v", value, got, fault)
			}
		}
	}
}

func TestParseVector(t *testing.T) {
	for s, want := range map[string]decode.Vector{
		"image=path:512":         {Name: "image", Path: "path", Length: 512, Precision: mutation.Float32},
		"image=a.b:4096:float16": {Name: "image", Path: "a.b", Length: 4096, Precision: mutation.Float16},
		"i-1=a:b:7:float32":      {Name: "i-1", Path: "a:b", Length: 7, Precision: mutation.Float32},
	} {
		if got, err := decode.ParseVector(s); err != nil || got != want {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	for s, words := range map[string]string{"image": "write NAME=PATH:LENGTH", "image=path": "write NAME=PATH:LENGTH",
		"=p:1": "a name is", "i m=p:1": "a name is", "image=p:0": "from 1 to 4096", "image=p:4097": "from 1 to 4096",
		"image=p:512:int8": "from 1 to 4096", "image=:3": "no path", "image=a[:3": "a["} {
		if _, err := decode.ParseVector(s); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", s, err, words)
		}
	}
	var many []decode.Vector
	for i := range decode.MaxVectors + 1 {
		many = append(many, vectorOf(t, fmt.Sprintf("v%d=v:1", i)))
	}
	for _, all := range [][]decode.Vector{many, {many[0], many[0]}} {
		_, err := decode.Nodes(decode.NodeMapping{ID: "id", Text: []string{"t"}, Vectors: all}, attributeLimits, 1)
		if err == nil {
			t.Errorf("%d vectors are taken", len(all))
		}
	}
}

func FuzzVectors(f *testing.F) {
	for _, s := range []string{`[1,-2e3,0]`, `"` + encoded(1, 2, 3) + `"`, `{"base64":"AAAA"}`, `"[1,NaN, 3]"`, `[null]`,
		`"["`, `[]`, `"]"`} {
		f.Add([]byte(s))
	}
	d := vectorDecoder(f)
	f.Fuzz(func(t *testing.T, value []byte) {
		got, fault := d.Decode(decode.Record{Key: []byte("k"),
			Value: fmt.Appendf(nil, `{"image":%s,"emb":{"text":%s}}`, value, value)}, nil)
		if (fault == nil) != (len(got) == 1) {
			t.Fatalf("%+v, %v", got, fault)
		}
		if fault != nil && fault.Code.Explain() == "" {
			t.Fatalf("unknown code %s", fault.Code)
		}
		for _, m := range got {
			for i := range m.Vectors {
				v := &m.Vectors[i]
				if want := map[string]int{"image": 3, "text": 2}[v.Name]; v.Len() != want || strings.Trim(v.Data, "\x00") == "" {
					t.Fatalf("%+v", v)
				}
			}
		}
	})
}

func BenchmarkVector(b *testing.B) {
	numbers, list := make([]float32, 512), make([]string, 512)
	for i := range numbers {
		numbers[i] = float32(math.Sin(float64(i)))
		list[i] = fmt.Sprint(numbers[i])
	}
	for name, value := range map[string]string{"base64": `"` + encoded(numbers...) + `"`,
		"list": "[" + strings.Join(list, ",") + "]"} {
		b.Run(name, func(b *testing.B) {
			d, err := decode.Attributes(decode.AttributesMapping{ID: "id",
				Vectors: []decode.Vector{vectorOf(b, "image=v:512:float16")}}, 3, attributeLimits, 1)
			if err != nil {
				b.Fatal(err)
			}
			r := decode.Record{Value: []byte(`{"id":"a","v":` + value + `}`)}
			for b.Loop() {
				if _, fault := d.Decode(r, nil); fault != nil {
					b.Fatal(fault)
				}
			}
		})
	}
}
