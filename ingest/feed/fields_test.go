package feed_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/bufbuild/protocompile"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/sr"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"giantstream/ingest/decode"
	"giantstream/ingest/internal/kafkatest"
	"giantstream/ingest/internal/registrytest"
	"giantstream/ingest/schema"
)

const fieldsAvro = `{"type":"record","name":"Product","fields":[
	{"name":"sku","type":"string"},
	{"name":"name","type":["null","string"]},
	{"name":"image","type":{"type":"array","items":"float"}},
	{"name":"packed","type":"bytes"},
	{"name":"maybe","type":["null",{"type":"array","items":"double"}]},
	{"name":"maybe_packed","type":["null","bytes"]},
	{"name":"price","type":["null",{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}]},
	{"name":"at","type":{"type":"long","logicalType":"timestamp-millis"}},
	{"name":"season","type":{"type":"enum","name":"Season","symbols":["SUMMER","WINTER"]}}]}`

const fieldsProto = `syntax = "proto3"; import "google/protobuf/timestamp.proto";
	enum Season { SUMMER = 0; WINTER = 1; }
	message Product {
		string sku = 1; optional string name = 2; repeated float image = 3; bytes packed = 4;
		repeated double maybe = 5; optional bytes maybe_packed = 6; optional string price = 7;
		google.protobuf.Timestamp at = 8; optional Season season = 9; }`

// packed are the bytes of float32s.
func packed(numbers ...float32) (b []byte) {
	for _, x := range numbers {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func readProducts(t *testing.T, f schema.Format, text string, values ...[]byte) (got []string) {
	t.Helper()
	e := kafkatest.Start(t, 1)
	of := registrytest.Schema{ID: 1, Text: text}
	if f == schema.Protobuf {
		of.Type = "PROTOBUF"
	}
	for i, v := range values {
		e.Send(t, kafka.Message{Topic: "nodes", Key: fmt.Append(nil, "P", i), Value: v, Time: day})
	}
	c := config(e)
	m := &c.Mapping.Nodes
	m.ID, m.Text, m.EventTime = "sku", []string{"name"}, "at"
	for _, s := range []string{"price:number", "season"} {
		a, err := decode.ParseAttribute(s)
		if err != nil {
			t.Fatal(err)
		}
		m.Attributes = append(m.Attributes, a)
	}
	for _, s := range []string{"list=image:3", "packed=packed:3", "maybe=maybe:2", "maybe_packed=maybe_packed:2:float16"} {
		v, err := decode.ParseVector(s)
		if err != nil {
			t.Fatal(err)
		}
		m.Vectors = append(m.Vectors, v)
	}
	r, err := schema.NewRegistry(schema.Options{URL: registrytest.Start(t, of).URL, Clock: c.Clock})
	if err != nil {
		t.Fatal(err)
	}
	translator, err := schema.NewTranslator(f, r, c.Limits.RecordBytes)
	if err != nil {
		t.Fatal(err)
	}
	c.Translators = map[string]*schema.Translator{e.Topics.Nodes: translator}
	for _, m := range drain(t, open(t, c, 0, nil)).Mutations {
		said := fmt.Sprintf("%s %q %s at %d", m.ID, m.Text, m.Attributes, m.Version.EventTime)
		for i := range m.Vectors {
			said += fmt.Sprintf(" %s=%v", m.Vectors[i].Name, m.Vectors[i].Numbers())
		}
		got = append(got, said)
	}
	return got
}

// wantProducts is what both products say in either format. The binary of the second one is UTF-8 by chance.
var wantProducts = []string{
	`P0 "pen" {"price":19.9,"season":"WINTER"} at 1709280000123000 list=[1 -2.5 0.1] maybe=[0.25 3] ` +
		`maybe_packed=[1 -2] packed=[1 -2.5 0.1]`,
	`P1 "" {"season":"SUMMER"} at 1709280000123000 list=[0 0.5 2] packed=[0 0.5 2]`,
}

// TestFieldsOfAvro: vectors as lists, binary and nullable, a decimal, a time and an enum arrive as the mapping says.
func TestFieldsOfAvro(t *testing.T) {
	s := avro.MustParse(fieldsAvro)
	var values [][]byte
	for _, v := range []map[string]any{
		{"sku": "P0", "name": "pen", "image": []float32{1, -2.5, 0.1}, "packed": packed(1, -2.5, 0.1),
			"maybe": []float64{0.25, 3}, "maybe_packed": packed(1, -2), "price": big.NewRat(1990, 100),
			"at": time.UnixMilli(1709280000123), "season": "WINTER"},
		{"sku": "P1", "name": nil, "image": []float32{0, 0.5, 2}, "packed": packed(0, 0.5, 2), "maybe": nil,
			"maybe_packed": nil, "price": nil, "at": time.UnixMilli(1709280000123), "season": "SUMMER"},
	} {
		b, err := new(sr.ConfluentHeader).AppendEncode(nil, 1, nil)
		if err == nil {
			b, err = s.AppendEncode(b, v)
		}
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, b)
	}
	if got := readProducts(t, schema.Avro, fieldsAvro, values...); !slices.Equal(got, wantProducts) {
		t.Errorf("got  %q\nwant %q", got, wantProducts)
	}
}

// TestFieldsOfProtobuf is TestFieldsOfAvro of Protobuf, which has no decimal: the price is a string.
func TestFieldsOfProtobuf(t *testing.T) {
	compiled, err := (&protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
		Accessor: protocompile.SourceAccessorFromMap(map[string]string{"p.proto": fieldsProto})})}).
		Compile(context.Background(), "p.proto")
	if err != nil {
		t.Fatal(err)
	}
	var values [][]byte
	for _, text := range []string{
		fmt.Sprintf(`{"sku":"P0","name":"pen","image":[1,-2.5,0.1],"packed":%q,"maybe":[0.25,3],"maybe_packed":%q,`+
			`"price":"19.90","at":"2024-03-01T08:00:00.123Z","season":"WINTER"}`, base64Of(1, -2.5, 0.1), base64Of(1, -2)),
		fmt.Sprintf(`{"sku":"P1","image":[0,0.5,2],"packed":%q,"at":"2024-03-01T08:00:00.123Z","season":"SUMMER"}`,
			base64Of(0, 0.5, 2)),
	} {
		m := dynamicpb.NewMessage(compiled[0].Messages().Get(0))
		if err := protojson.Unmarshal([]byte(text), m); err != nil {
			t.Fatal(err)
		}
		b, err := new(sr.ConfluentHeader).AppendEncode(nil, 1, []int{0})
		if err == nil {
			b, err = proto.MarshalOptions{}.MarshalAppend(b, m)
		}
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, b)
	}
	if got := readProducts(t, schema.Protobuf, fieldsProto, values...); !slices.Equal(got, wantProducts) {
		t.Errorf("got  %q\nwant %q", got, wantProducts)
	}
}

func base64Of(numbers ...float32) string {
	return base64.StdEncoding.EncodeToString(packed(numbers...))
}
