package schema_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/sr"
	"google.golang.org/protobuf/encoding/protowire"

	"giantstream/ingest/decode"
	"giantstream/ingest/internal/registrytest"
	"giantstream/ingest/schema"
)

const productAvro = `{"type": "record", "name": "shop.Product", "fields": [
	{"name": "sku", "type": "long"},
	{"name": "title", "type": ["null", "string"], "default": null},
	{"name": "also_bought", "type": {"type": "array", "items": "string"}},
	{"name": "updated", "type": {"type": "long", "logicalType": "timestamp-millis"}},
	{"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
	{"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["BOOK", "PEN"]}},
	{"name": "raw", "type": "bytes"},
	{"name": "attributes", "type": {"type": "map", "values": ["int", "string", "boolean"]}},
	{"name": "brand", "type": "shop.Brand"},
	{"name": "weight", "type": {"type": "record", "name": "V", "fields": [{"name": "scale", "type": "int"},
		{"name": "value", "type": "bytes"}], "connect.name": "io.debezium.data.VariableScaleDecimal"}}
]}`

const brandAvro = `{"type": "record", "name": "shop.Brand", "fields": [{"name": "name", "type": "string"}]}`

const productProto = `syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import "brand.proto";
message Other {}
message Catalog {
  enum Kind { UNKNOWN = 0; PEN = 1; }
  message Product {
    int64 sku = 1;
    string title = 2;
    repeated string also_bought = 3;
    google.protobuf.Timestamp updated = 4;
    Kind kind = 5;
    bytes raw = 6;
    map<string, int32> attributes = 7;
    Brand brand = 8;
    google.protobuf.StringValue subtitle = 9;
    google.protobuf.Struct extra = 10;
    double weight = 11;
    bool deleted = 12;
  }
}`

// connectProto is as Confluent's converter of Kafka Connect writes files.
const connectProto = `syntax = "proto3";
import "confluent/meta.proto";
import "confluent/type/decimal.proto";
message Row {
  option (confluent.message_meta) = {doc: "a row", params: [{key: "version", value: "1"}]};
  confluent.type.Decimal price = 1 [(confluent.field_meta) = {params: [{key: "scale", value: "2"}]}];
  repeated confluent.type.Decimal sizes = 2;
}`

// What confluent-kafka 2.16 for Python registers: descriptors, with google/type imported and no reference for it.
//
//	message Item { string sku = 1; google.type.Money price = 2; google.type.Date since = 3; Brand brand = 4; }
const (
	itemDescriptor = "CgptaW5pLnByb3RvEgRzaG9wGhZnb29nbGUvdHlwZS9kYXRlLnByb3RvGhdnb29nbGUvdHlwZS9tb25leS5wcm90bxoLYnJhbm" +
		"QucHJvdG8idAoESXRlbRILCgNza3UYASABKAkSIQoFcHJpY2UYAiABKAsyEi5nb29nbGUudHlwZS5Nb25leRIgCgVzaW5jZRgDIAEoCzIRLm" +
		"dvb2dsZS50eXBlLkRhdGUSGgoFYnJhbmQYBCABKAsyCy5zaG9wLkJyYW5kYgZwcm90bzM="
	brandDescriptor = "CgticmFuZC5wcm90bxIEc2hvcCIVCgVCcmFuZBIMCgRuYW1lGAEgASgJYgZwcm90bzM="
)

const brandProto = `syntax = "proto3"; package shop; message Brand { string name = 1; }`

func registry(t testing.TB) *registrytest.Registry {
	return registrytest.Start(t,
		registrytest.Schema{ID: 1, Subject: "product", Version: 1, Text: productAvro,
			References: []registrytest.Reference{{Name: "shop.Brand", Subject: "brand", Version: 1}}},
		registrytest.Schema{ID: 2, Subject: "brand", Version: 1, Text: brandAvro},
		registrytest.Schema{ID: 3, Subject: "proto", Version: 1, Type: "PROTOBUF", Text: productProto,
			References: []registrytest.Reference{{Name: "brand.proto", Subject: "brand-proto", Version: 1}}},
		registrytest.Schema{ID: 4, Subject: "brand-proto", Version: 1, Type: "PROTOBUF", Text: brandProto},
		registrytest.Schema{ID: 5, Subject: "json", Version: 1, Type: "JSON", Text: `{"type":"object"}`},
		registrytest.Schema{ID: 8, Subject: "item", Version: 1, Type: "PROTOBUF", Text: itemDescriptor,
			References: []registrytest.Reference{{Name: "brand.proto", Subject: "brand-descriptor", Version: 1}}},
		registrytest.Schema{ID: 11, Subject: "brand-descriptor", Version: 1, Type: "PROTOBUF", Text: brandDescriptor},
		registrytest.Schema{ID: 10, Subject: "types", Version: 1, Type: "PROTOBUF", Text: allTypes()},
		registrytest.Schema{ID: 7, Subject: "connect", Version: 1, Type: "PROTOBUF", Text: connectProto},
		registrytest.Schema{ID: 6, Subject: "broken", Version: 1, Text: `{"type": "record"`},
	)
}

// allTypes imports all of google/type.
func allTypes() string {
	var b strings.Builder
	b.WriteString(`syntax = "proto3"; message M {}`)
	for file := range strings.FieldsSeq("calendar_period color date datetime dayofweek decimal expr fraction interval " +
		"latlng localized_text money month phone_number postal_address quaternion timeofday") {
		fmt.Fprintf(&b, ` import "google/type/%s.proto";`, file)
	}
	return b.String()
}

// translator returns a translator, and what moves its clock.
func translator(t testing.TB, r *registrytest.Registry, f schema.Format) (
	tr *schema.Translator, later func(time.Duration),
) {
	t.Helper()
	now := time.Unix(0, 0)
	reg, err := schema.NewRegistry(schema.Options{URL: r.URL, Username: r.Username, Password: r.Password,
		Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	if tr, err = schema.NewTranslator(f, reg, 1<<20); err != nil {
		t.Fatal(err)
	}
	return tr, func(d time.Duration) { now = now.Add(d) }
}

// withSchema puts the header of the wire format before a value.
func withSchema(t testing.TB, id int, index []int, value []byte) []byte {
	t.Helper()
	b, err := new(sr.ConfluentHeader).AppendEncode(nil, id, index)
	if err != nil {
		t.Fatal(err)
	}
	return append(b, value...)
}

func avroProduct(t testing.TB) []byte {
	t.Helper()
	var cache avro.SchemaCache
	if _, err := cache.Parse(brandAvro); err != nil {
		t.Fatal(err)
	}
	s, err := cache.Parse(productAvro)
	if err != nil {
		t.Fatal(err)
	}
	value, err := s.Encode(map[string]any{
		"sku": int64(9007199254740993), "title": `Red "pen"`, "also_bought": []string{"1", "2"},
		"updated": time.UnixMilli(1714521600123), "price": big.NewRat(1999, 100), "kind": "PEN",
		"raw": []byte{0xff, 0}, "attributes": map[string]any{"pages": int32(3), "colour": "red"},
		"brand": map[string]any{"name": "Bic"}, "weight": map[string]any{"scale": int32(1), "value": []byte{0xfb}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return withSchema(t, 1, nil, value)
}

// protoProduct is the message at Catalog.Product, written by hand.
func protoProduct(t testing.TB) []byte {
	value := strings.Join([]string{
		"\x08\x81\x80\x80\x80\x80\x80\x80\x10", // sku: 2^53+1
		"\x12\x09Red \"pen\"", "\x1a\x011", "\x1a\x012",
		"\x22\x0b\x08\xc0\xe1\xc5\xb1\x06\x10\xc0\xa8\xd3\x3a", // 1714516160 s, 122999872 ns
		"\x28\x01", "\x32\x02\xff\x00", "\x3a\x09\x0a\x05pages\x10\x03", "\x42\x05\x0a\x03Bic",
		"\x4a\x00", // subtitle: the empty string
		"\x52\x0a\x0a\x08\x0a\x01a\x12\x03\x1a\x01b", // extra: {a: "b"}
		"\x59\x00\x00\x00\x00\x00\x00\x08\x40",       // weight: 3
		"\xf8\x07\x01",                               // a field that the schema lacks
	}, "")
	return withSchema(t, 3, []int{1, 0}, []byte(value))
}

func TestValuesBecomeTheJSONThatAProducerOfJSONWouldSend(t *testing.T) {
	for _, tt := range []struct {
		format schema.Format
		value  []byte
		want   string
	}{
		{schema.Avro, avroProduct(t),
			`{"also_bought":["1","2"],"attributes":{"colour":"red","pages":3},"brand":{"name":"Bic"},"kind":"PEN",` +
				`"price":19.99,` +
				`"raw":{"base64":"/wA="},"sku":9007199254740993,"title":"Red \"pen\"","updated":"2024-05-01T00:00:00.123Z",` +
				`"weight":-0.5}`},
		{schema.Protobuf, protoProduct(t),
			`{"sku":9007199254740993,"title":"Red \"pen\"","also_bought":["1","2"],` +
				`"updated":"2024-04-30T22:29:20.122999872Z","kind":"PEN",` +
				`"raw":{"base64":"/wA="},"attributes":{"pages":3},"brand":{"name":"Bic"},"subtitle":"","extra":{"a":"b"},` +
				`"weight":3}`},
		// A timestamp that is none is an object, which is no event time: nanos -1, then seconds of the year 10000.
		{schema.Protobuf, withSchema(t, 3, []int{1, 0},
			[]byte("\x22\x0d\x08\x01\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")),
			`{"updated":{"seconds":1,"nanos":-1}}`},
		{schema.Protobuf, withSchema(t, 3, []int{1, 0}, []byte("\x22\x07\x08\x80\x83\xd1\xff\xaf\x07")),
			`{"updated":{"seconds":253402300800}}`},
		{schema.Protobuf, withSchema(t, 7, []int{0},
			[]byte("\x0a\x06\x0a\x02\x07\xcf\x18\x02\x12\x05\x0a\x01\xff\x18\x01\x12\x00")),
			`{"price":19.99,"sizes":[-0.1,0]}`},
		{schema.Protobuf, withSchema(t, 8, []int{0}, []byte("\x0a\x02P1\x12\x0d\x0a\x03EUR\x10\x13\x18\x80\xd2\x93\xad\x03"+
			"\x1a\x07\x08\xe8\x0f\x10\x05\x18\x01\x22\x05\x0a\x03Bic")),
			`{"sku":"P1","price":{"currency_code":"EUR","units":19,"nanos":900000000,"amount":19.9},` +
				`"since":"2024-05-01","brand":{"name":"Bic"}}`},
		// Less than one unit, and a day of no year.
		{schema.Protobuf, withSchema(t, 8, []int{0}, []byte("\x12\x0b\x18\x80\x9f\x94\xe8\xff\xff\xff\xff\xff\x01"+
			"\x1a\x04\x10\x05\x18\x01")), `{"price":{"nanos":-50000000,"amount":-0.05},"since":{"month":5,"day":1}}`},
		{schema.Protobuf, withSchema(t, 8, []int{0}, []byte("\x12\x00")), `{"price":{"amount":0}}`},
		{schema.Protobuf, withSchema(t, 10, []int{0}, nil), `{}`},
		{schema.Avro, []byte(`{"sku": 1}`), `{"sku": 1}`},
		{schema.Protobuf, nil, ``},
	} {
		tr, _ := translator(t, registry(t), tt.format)
		got, fault, err := tr.JSON(t.Context(), nil, tt.value)
		if fault != nil || err != nil {
			t.Errorf("%s: %v, %v", tt.format, fault, err)
			continue
		}
		if string(got) != tt.want {
			t.Errorf("%s gives\n%s\nwant\n%s", tt.format, got, tt.want)
		}
		if got != nil && !json.Valid(got) {
			t.Errorf("not JSON: %s", got)
		}
	}
}

func TestWhatIsWrongWithAValue(t *testing.T) {
	a, p := avroProduct(t), protoProduct(t)
	for name, tt := range map[string]struct {
		format schema.Format
		value  []byte
		want   decode.Code
		says   string
	}{
		"empty":                 {schema.Avro, []byte{}, decode.BadEncoding, "zero byte"},
		"no header":             {schema.Avro, []byte("\x02abc"), decode.BadEncoding, "zero byte"},
		"cut":                   {schema.Avro, a[:len(a)-2], decode.BadEncoding, "schema 1"},
		"too long":              {schema.Avro, append(a[:len(a):len(a)], 0), decode.BadEncoding, "left over"},
		"Apicurio's id":         {schema.Avro, append(make([]byte, 8), 7, 0), decode.UnknownSchema, "as-confluent"},
		"id in a header":        {schema.Avro, []byte("\x00\x02\x48dcba"), decode.UnknownSchema, "headers.enabled=false"},
		"unknown id":            {schema.Avro, withSchema(t, 99, nil, a[5:]), decode.UnknownSchema, "schema 99"},
		"id of no registry":     {schema.Avro, append([]byte{0, 0x80, 0, 0, 1}, a[5:]...), decode.UnknownSchema, "214748"},
		"another kind":          {schema.Avro, p, decode.UnknownSchema, "PROTOBUF"},
		"a JSON schema":         {schema.Protobuf, withSchema(t, 5, nil, nil), decode.UnknownSchema, "JSON"},
		"a schema that is none": {schema.Avro, withSchema(t, 6, nil, nil), decode.UnknownSchema, "schema 6"},
		"no such message":       {schema.Protobuf, withSchema(t, 3, []int{1, 7}, nil), decode.BadEncoding, "message 7"},
		"negative path":         {schema.Protobuf, withSchema(t, 3, []int{-1}, nil), decode.BadEncoding, "message -1"},
		"cut path":              {schema.Protobuf, []byte{0, 0, 0, 0, 3, 4}, decode.BadEncoding, "path"},
		"bad Protobuf": {schema.Protobuf, withSchema(t, 3, []int{1, 0}, []byte("\x12\x09abc")),
			decode.BadEncoding, "schema 3"},
		"large": {schema.Avro, make([]byte, 1<<20+1), decode.RecordTooLarge, "limit"},
	} {
		t.Run(name, func(t *testing.T) {
			tr, _ := translator(t, registry(t), tt.format)
			_, fault, err := tr.JSON(t.Context(), nil, tt.value)
			if err != nil || fault == nil || fault.Code != tt.want || !strings.Contains(fault.Message, tt.says) {
				t.Errorf("got %v, %v; want %s with %q", fault, err, tt.want, tt.says)
			}
		})
	}
}

func TestJSONOfAValueIsBounded(t *testing.T) {
	text := `{"type": "record", "name": "R", "fields": [{"name": "list", "type": {"type": "array", "items":
		{"type": "record", "name": "E", "fields": [{"name": "` + strings.Repeat("long", 50) + `", "type": "int"}]}}}]}`
	s := avro.MustParse(text)
	items := make([]map[string]any, 200_000)
	for i := range items {
		items[i] = map[string]any{strings.Repeat("long", 50): int32(0)}
	}
	value, err := s.Encode(map[string]any{"list": items})
	if err != nil {
		t.Fatal(err)
	}
	tr, _ := translator(t, registrytest.Start(t, registrytest.Schema{ID: 1, Text: text}), schema.Avro)
	if _, fault, err := tr.JSON(t.Context(), nil, withSchema(t, 1, nil, value)); err != nil || fault == nil ||
		fault.Code != decode.RecordTooLarge {
		t.Errorf("%d bytes that are 40 MB as JSON: %v, %v", len(value), fault, err)
	}
}

func TestARegistryThatFailsIsNoFaultOfTheValue(t *testing.T) {
	r := registry(t)
	tr, _ := translator(t, r, schema.Avro)
	for _, status := range []int{http.StatusInternalServerError, http.StatusTooManyRequests, http.StatusForbidden,
		http.StatusNotFound} {
		r.Fail(status)
		if _, fault, err := tr.JSON(t.Context(), nil, avroProduct(t)); err == nil || fault != nil {
			t.Errorf("HTTP %d: fault %v, error %v; want an error alone", status, fault, err)
		}
	}
	r.Fail(0)
	for _, text := range []string{"{}", "null", `{"error": "upstream timeout"}`, `[]`, `<html>Log in</html>`} {
		r.Answer(text)
		if _, fault, err := tr.JSON(t.Context(), nil, avroProduct(t)); err == nil || fault != nil {
			t.Errorf("the answer %s: fault %v, error %v; want an error alone", text, fault, err)
		}
	}
	r.Answer("")
	if _, fault, err := tr.JSON(t.Context(), nil, avroProduct(t)); err != nil || fault != nil {
		t.Fatalf("after it came back: %v, %v", fault, err)
	}
	r.Fail(http.StatusInternalServerError)
	if _, fault, err := tr.JSON(t.Context(), nil, avroProduct(t)); err != nil || fault != nil {
		t.Errorf("with a schema that was fetched before: %v, %v", fault, err)
	}
}

func TestUnknownSchemasAreAskedForNowAndThen(t *testing.T) {
	r := registry(t)
	tr, later := translator(t, r, schema.Avro)
	late := withSchema(t, 9, nil, []byte("\x06Bic"))
	for range 3 {
		if _, fault, _ := tr.JSON(t.Context(), nil, late); fault == nil || fault.Code != decode.UnknownSchema {
			t.Fatalf("fault %v", fault)
		}
	}
	if n := r.Requests(); n != 1 {
		t.Errorf("%d requests for three values of one unknown schema, want 1", n)
	}
	r.Add(registrytest.Schema{ID: 9, Text: brandAvro})
	later(time.Minute)
	if got, fault, err := tr.JSON(t.Context(), nil, late); string(got) != `{"name":"Bic"}` {
		t.Errorf("a minute later: %s, %v, %v", got, fault, err)
	}
}

func TestSecretsStayOutOfErrors(t *testing.T) {
	r := registry(t)
	r.Username, r.Password = "me", "topsecret"
	tr, _ := translator(t, r, schema.Avro)
	if _, fault, err := tr.JSON(t.Context(), nil, avroProduct(t)); fault != nil || err != nil {
		t.Fatalf("with the password: %v, %v", fault, err)
	}
	tr, _ = translator(t, r, schema.Avro)
	r.Password = "another"
	_, _, err := tr.JSON(t.Context(), nil, avroProduct(t))
	if err == nil || strings.Contains(err.Error(), "topsecret") || !strings.Contains(err.Error(), "password") {
		t.Errorf("with a wrong password: %v", err)
	}
	gone, err := schema.NewRegistry(schema.Options{URL: "http://127.0.0.1:1",
		Username: "me", Password: "topsecret", Clock: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	tr, err = schema.NewTranslator(schema.Avro, gone, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = tr.JSON(t.Context(), nil, avroProduct(t))
	if err == nil || strings.Contains(err.Error(), "topsecret") || !errors.Is(gone.Err(), err) {
		t.Errorf("nobody listens: %v; Err says %v", err, gone.Err())
	}
}

func FuzzTranslator(f *testing.F) {
	f.Add(true, avroProduct(f))
	f.Add(false, protoProduct(f))
	f.Add(true, []byte{0, 0, 0, 0, 2, 6, 'B', 'i', 'c'})
	f.Add(false, withSchema(f, 4, []int{0}, []byte("\x0a\x03Bic")))
	r := registry(f)
	avros, _ := translator(f, r, schema.Avro)
	protos, _ := translator(f, r, schema.Protobuf)
	f.Fuzz(func(t *testing.T, isAvro bool, value []byte) {
		tr := protos
		if isAvro {
			tr = avros
		}
		if len(value) > 4 { // of the schemas that there are
			value[1], value[2], value[3], value[4] = 0, 0, 0, value[4]%12
		}
		got, fault, err := tr.JSON(t.Context(), nil, value)
		switch {
		case err != nil:
			t.Fatal(err)
		case fault == nil && len(value) > 0 && value[0] == 0 && !json.Valid(got):
			t.Fatalf("not JSON: %q", got)
		}
	})
}

// TestBombsOfSchemas: counts that no bytes stand for, and nesting, are faults of the value and cost
// no memory.
func TestBombsOfSchemas(t *testing.T) {
	const nulls = `{"type": "record", "name": "N", "fields": [{"name": "l", "type": {"type": "array", "items": "null"}}]}`
	const list = `{"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}`
	const tree = `syntax = "proto3"; message T { T next = 1; repeated int32 list = 2; }`
	r := registrytest.Start(t, registrytest.Schema{ID: 1, Text: nulls}, registrytest.Schema{ID: 2, Text: list},
		registrytest.Schema{ID: 3, Type: "PROTOBUF", Text: tree})
	avroOf, _ := translator(t, r, schema.Avro)
	protoOf, _ := translator(t, r, schema.Protobuf)
	nested := []byte{}
	for range 5000 { // each in the one before
		nested = append(append([]byte{0x0a}, protowire.AppendVarint(nil, uint64(len(nested)))...), nested...)
	}
	for name, test := range map[string]struct {
		tr    *schema.Translator
		value []byte
		code  decode.Code
	}{
		"a billion nulls":  {avroOf, withSchema(t, 1, nil, append(binary.AppendVarint(nil, 1<<30), 0)), decode.BadEncoding},
		"a list in a list": {avroOf, withSchema(t, 2, nil, bytes.Repeat([]byte{2}, 1<<19)), decode.BadEncoding},
		"messages":         {protoOf, withSchema(t, 3, []int{0}, nested), decode.BadEncoding},
		"a million integers": {protoOf,
			withSchema(t, 3, []int{0}, protowire.AppendBytes([]byte{0x12}, make([]byte, 1<<20-100))), ""},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, fault, err := test.tr.JSON(t.Context(), nil, test.value)
		runtime.ReadMemStats(&after)
		if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 200 {
			t.Errorf("%s: %d MiB were allocated", name, mb)
		}
		if err != nil || (fault == nil) != (test.code == "") || fault != nil && fault.Code != test.code {
			t.Errorf("%s: %v, %v; want %q", name, fault, err, test.code)
		}
	}
}
