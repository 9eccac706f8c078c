package ingest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/sr"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"giantstream/ingest/internal/registrytest"
	"giantstream/ingest/schema"
)

// typesSchemas are a schema of Avro and one of Protobuf with a field for each type in each role, so that
// one of each serves all tables.
type typesSchemas struct {
	avro    *avro.Schema
	message protoreflect.MessageDescriptor

	fromAvro, fromProtobuf *schema.Translator
}

func newTypesSchemas(t testing.TB) *typesSchemas {
	var s typesSchemas
	avroText, protoText := typesAvro(), typesProto()
	parsed, err := avro.Parse(avroText)
	if err != nil {
		t.Fatal(err)
	}
	s.avro = parsed
	s.message = firstMessage(t, protoText)
	server := registrytest.Start(t, registrytest.Schema{ID: 1, Text: avroText},
		registrytest.Schema{ID: 2, Type: "PROTOBUF", Text: protoText})
	registry, err := schema.NewRegistry(schema.Options{URL: server.URL, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	if s.fromAvro, err = schema.NewTranslator(schema.Avro, registry, 1<<20); err != nil {
		t.Fatal(err)
	}
	if s.fromProtobuf, err = schema.NewTranslator(schema.Protobuf, registry, 1<<20); err != nil {
		t.Fatal(err)
	}
	return &s
}

// firstMessage compiles a file of Protobuf and returns its first message.
func firstMessage(t testing.TB, text string) protoreflect.MessageDescriptor {
	t.Helper()
	compiled, err := (&protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
		Accessor: protocompile.SourceAccessorFromMap(map[string]string{"t.proto": text})})}).
		Compile(context.Background(), "t.proto")
	if err != nil {
		t.Fatal(err)
	}
	return compiled[0].Messages().Get(0)
}

func typesAvro() string {
	var fields []string
	defined := map[string]bool{}
	for i := range allTypes {
		for role, name := range roles {
			k := &allTypes[i]
			if k.avro == "" {
				continue
			}
			text := k.avro
			if strings.Contains(text, `"name":`) { // defined once
				_, after, _ := strings.Cut(text, `"name":"`)
				named, _, _ := strings.Cut(after, `"`)
				if defined[named] {
					text = `"` + named + `"`
				}
				defined[named] = true
			}
			if role == 4 {
				text = `{"type":"array","items":` + text + `}`
			}
			fields = append(fields, fmt.Sprintf(`{"name":"%s_%s","type":["null",%s]}`, name, k.name, text))
		}
	}
	return `{"type":"record","name":"Row","fields":[` + strings.Join(fields, ",\n") + `]}`
}

func typesProto() string {
	var b strings.Builder
	b.WriteString("syntax = \"proto3\"; import \"google/protobuf/timestamp.proto\"; message Row {\n")
	n := 0
	for i := range allTypes {
		for role, name := range roles {
			if allTypes[i].proto == "" {
				continue
			}
			n++
			label := "optional"
			if role == 4 {
				label = "repeated"
			}
			fmt.Fprintf(&b, "%s %s %s_%s = %d;\n", label, allTypes[i].proto, name, allTypes[i].name, n)
		}
	}
	return b.String() + "}"
}

func (s *typesSchemas) readAvro(t *testing.T, _ *rand.Rand, table *table) (got []string) {
	for i := range table.rows {
		value := map[string]any{}
		for _, f := range s.avro.Root().Fields {
			value[f.Name] = nil
		}
		for role, k := range table.types {
			if k.avro == "" {
				return nil
			}
			if role < 4 {
				if c := table.rows[i].cells()[role]; c.kind != aNull {
					value[table.column(role)] = k.asAvro(c)
				}
				continue
			}
			list := []any{}
			for c := range table.rows[i].list {
				list = append(list, k.asAvro(&table.rows[i].list[c]))
			}
			value[table.column(role)] = list
		}
		b, err := new(sr.ConfluentHeader).AppendEncode(nil, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, err = s.avro.AppendEncode(b, value); err != nil {
			t.Fatalf("Avro: %v", err)
		}
		got = append(got, saidByTranslator(t, s.fromAvro, table, b))
	}
	return got
}

func (s *typesSchemas) readProtobuf(t *testing.T, _ *rand.Rand, table *table) (got []string) {
	for i := range table.rows {
		m := dynamicpb.NewMessage(s.message)
		for role, k := range table.types {
			if k.proto == "" {
				return nil
			}
			field := s.message.Fields().ByName(protoreflect.Name(table.column(role)))
			if role < 4 {
				if c := table.rows[i].cells()[role]; c.kind != aNull {
					m.Set(field, protoValue(k.asProto(c)))
				}
				continue
			}
			for c := range table.rows[i].list {
				m.Mutable(field).List().Append(protoValue(k.asProto(&table.rows[i].list[c])))
			}
		}
		b, err := new(sr.ConfluentHeader).AppendEncode(nil, 2, []int{0})
		if err != nil {
			t.Fatal(err)
		}
		if b, err = (proto.MarshalOptions{}).MarshalAppend(b, m); err != nil {
			t.Fatalf("Protobuf: %v", err)
		}
		got = append(got, saidByTranslator(t, s.fromProtobuf, table, b))
	}
	return got
}

func protoValue(v any) protoreflect.Value {
	if m, ok := v.(proto.Message); ok {
		return protoreflect.ValueOfMessage(m.ProtoReflect())
	}
	return protoreflect.ValueOf(v)
}

func saidByTranslator(t *testing.T, from *schema.Translator, table *table, value []byte) string {
	t.Helper()
	json, fault, err := from.JSON(t.Context(), nil, value)
	if err != nil {
		t.Fatal(err)
	}
	if fault != nil {
		return "dead letter"
	}
	return said(t, typesMapping(table), json)
}
