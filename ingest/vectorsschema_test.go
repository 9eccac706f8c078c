package ingest_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/sr"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"giantstream/ingest/decode"
	"giantstream/ingest/internal/kafkatest"
	"giantstream/ingest/internal/registrytest"
	"giantstream/ingest/schema"
	"giantstream/stream/mutation"
)

const (
	vectorsAvro = `{"type":"record","name":"Row","fields":[{"name":"id","type":"string"},
		{"name":"floats","type":["null",{"type":"array","items":"float"}]},
		{"name":"doubles","type":{"type":"array","items":"double"}},
		{"name":"binary","type":"bytes"}]}`
	vectorsProto = `syntax = "proto3"; message Row { string id = 1; repeated float floats = 2; repeated double doubles = 3;
		bytes binary = 4; }`
)

// drawVector draws numbers of all magnitudes that float32 has, and those that encodings treat by themselves.
func drawVector(r *rand.Rand) []float32 {
	special := []float32{0, float32(math.Copysign(0, -1)), 1, math.MaxFloat32, math.SmallestNonzeroFloat32, 0.5, 2, -1e-20}
	v := make([]float32, 1+r.IntN(8))
	for i := range v {
		v[i] = special[r.IntN(len(special))]
		for r.IntN(3) > 0 {
			x := math.Float32frombits(r.Uint32())
			if x-x == 0 {
				v[i] = x
				break
			}
		}
	}
	v[r.IntN(len(v))] = 1 // a vector of zeros is a dead letter
	return v
}

// A vector in an array of floats or doubles or in bytes arrives by the same bits from Avro and from Protobuf; −0 is 0.
func TestVectorsArriveFromAvroAndProtobuf(t *testing.T) {
	parsed, err := avro.Parse(vectorsAvro)
	if err != nil {
		t.Fatal(err)
	}
	message := firstMessage(t, vectorsProto)
	server := registrytest.Start(t, registrytest.Schema{ID: 1, Text: vectorsAvro},
		registrytest.Schema{ID: 2, Type: "PROTOBUF", Text: vectorsProto})
	registry, err := schema.NewRegistry(schema.Options{URL: server.URL, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	arrived := func(format schema.Format, value []byte, length int) []mutation.Vector {
		translator, err := schema.NewTranslator(format, registry, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		json, fault, err := translator.JSON(t.Context(), nil, value)
		if err != nil || fault != nil {
			t.Fatal(err, fault)
		}
		m := decode.NodeMapping{ID: "id"}
		for _, name := range []string{"binary", "doubles", "floats"} {
			m.Vectors = append(m.Vectors, decode.Vector{Name: name, Path: name, Length: length, Precision: mutation.Float32})
		}
		d, err := decode.Nodes(m, kafkatest.Limits(), 1)
		if err != nil {
			t.Fatal(err)
		}
		got, fault := d.Decode(decode.Record{Value: json, Time: now}, nil)
		if fault != nil {
			t.Fatalf("%s of %d numbers: %v: %s", format, length, fault, json)
		}
		return got[0].Vectors
	}
	header := func(id int, index []int) []byte {
		b, err := new(sr.ConfluentHeader).AppendEncode(nil, id, index)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	r := rand.New(rand.NewPCG(7, 0))
	for range 300 {
		floats := drawVector(r)
		doubles := make([]float64, len(floats))
		var data, want []byte
		m := dynamicpb.NewMessage(message)
		for i, x := range floats {
			doubles[i] = float64(x)
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
			want = binary.LittleEndian.AppendUint32(want, math.Float32bits(x+0))
			m.Mutable(message.Fields().ByName("floats")).List().Append(protoreflect.ValueOfFloat32(x))
			m.Mutable(message.Fields().ByName("doubles")).List().Append(protoreflect.ValueOfFloat64(float64(x)))
		}
		m.Set(message.Fields().ByName("id"), protoreflect.ValueOfString("n"))
		m.Set(message.Fields().ByName("binary"), protoreflect.ValueOfBytes(data))
		inAvro, err := parsed.AppendEncode(header(1, nil),
			map[string]any{"id": "n", "floats": floats, "doubles": doubles, "binary": data})
		if err != nil {
			t.Fatal(err)
		}
		inProtobuf, err := proto.MarshalOptions{}.MarshalAppend(header(2, []int{0}), m)
		if err != nil {
			t.Fatal(err)
		}
		for format, value := range map[schema.Format][]byte{schema.Avro: inAvro, schema.Protobuf: inProtobuf} {
			got := arrived(format, value, len(floats))
			if len(got) != 3 {
				t.Fatalf("%s: %d vectors", format, len(got))
			}
			for _, v := range got {
				if v.Data != string(want) {
					t.Errorf("%s, %s: %x, want %x (%v)", format, v.Name, v.Data, want, floats)
				}
			}
		}
	}
}
