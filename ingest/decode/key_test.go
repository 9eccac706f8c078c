package decode_test

import (
	"reflect"
	"strings"
	"testing"

	"giantstream/ingest/decode"
	"giantstream/stream/mutation"
)

// The keys that Debezium 3 writes for a row of inventory.products with the primary key sku, by the
// converters of Kafka Connect.
const (
	debeziumKey       = `{"sku":"P00005"}`
	debeziumSchemaKey = `{"schema":{"type":"struct","fields":[{"type":"string","optional":false,"field":"sku"}],` +
		`"optional":false,"name":"shop.inventory.products.Key"},"payload":{"sku":"P00005"}}`
)

func TestKeysOfDebezium(t *testing.T) {
	flat := decode.NodeMapping{ID: "sku", Text: []string{"name"}, Deleted: "__deleted"}
	gone := node(mutation.Mutation{Op: mutation.DeleteNode, ID: "P00005"})
	for name, c := range map[string]struct {
		mapping    decode.NodeMapping
		key, value string // "" is null
		want       []mutation.Mutation
	}{
		"tombstone":                        {flat, debeziumKey, "", gone},
		"tombstone, with its schema":       {flat, debeziumSchemaKey, "", gone},
		"tombstone, mapped into an object": {decode.NodeMapping{ID: "product.sku"}, debeziumKey, "", gone},
		"tombstone of an integer": {flat, `{"sku":1012351}`, "",
			node(mutation.Mutation{Op: mutation.DeleteNode, ID: "1012351"})},
		"tombstone of two columns": {flat, `{"shop":7,"sku":"P00005"}`, "", gone},
		"tombstone of a plain key": {flat, "P00005", "", gone},
		"of JSON Schema": {flat, "\x00\x00\x00\x00\x07" + debeziumKey, "\x00\x00\x00\x00\x08" + `{"name":"pen"}`,
			node(mutation.Mutation{ID: "P00005", Text: "pen"})},
		"a plain key with braces": {flat, "{P00005}", "",
			node(mutation.Mutation{Op: mutation.DeleteNode, ID: "{P00005}"})},
		"a string with its schema": {flat, `{"schema":{"type":"string","optional":false},"payload":"P00005"}`, "",
			gone},
		"columns called schema and payload": {decode.NodeMapping{ID: "payload"}, `{"schema":"a","payload":"P00005"}`, "",
			gone},
		"flattened, with rewrites": {flat, debeziumKey, `{"sku":"P00005","name":"","__deleted":"true"}`, gone},
		"flattened, not deleted": {flat, debeziumKey, `{"sku":"P00005","name":"pen","__deleted":"false"}`,
			node(mutation.Mutation{ID: "P00005", Text: "pen"})},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(c.key, c.value)
			if c.value == "" {
				r.Value = nil
			}
			got, fault := nodes(t, c.mapping).Decode(r, nil)
			if fault != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, %v\nwant %+v", got, fault, c.want)
			}
		})
	}
}

func TestKeysOfDebeziumForEdges(t *testing.T) {
	v := mutation.Version{EventTime: stampUs, Rank: 1, Offset: 7}
	add := decode.EdgeMapping{Src: "src", Dst: "dst"}
	replace := decode.EdgeMapping{Src: "src", Dst: "links[*].dst", Mode: decode.Replace}
	for name, c := range map[string]struct {
		mapping    decode.EdgeMapping
		key, value string
		want       mutation.Mutation
		fault      decode.Code
	}{
		"tombstone of one edge": {add, `{"src":"a","dst":"b"}`, "",
			mutation.Mutation{Op: mutation.DeleteEdge, ID: "a", Other: "b", Version: v}, ""},
		"tombstone of a source": {replace, `{"src":"a"}`, "",
			mutation.Mutation{Op: mutation.ClearEdges, ID: "a", Version: v}, ""},
		"a key of neither end":        {add, `{"id":7}`, "", mutation.Mutation{}, decode.MissingSrc},
		"an edge in a key to itself":  {add, `{"src":"a","dst":"a"}`, "", mutation.Mutation{}, decode.SelfLoop},
		"a far end that is no id":     {add, `{"src":"a","dst":1.5}`, "", mutation.Mutation{}, decode.BadType},
		"a source that is a fraction": {add, `{"src":1.5,"dst":"a"}`, "", mutation.Mutation{}, decode.BadType},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(c.key, c.value)
			if c.value == "" {
				r.Value = nil
			}
			got, fault := edges(t, c.mapping).Decode(r, nil)
			if c.fault != "" {
				if fault == nil || fault.Code != c.fault || len(got) > 0 {
					t.Errorf("got %+v, %v; want the fault %s", got, fault, c.fault)
				}
				return
			}
			if fault != nil || !reflect.DeepEqual(got, []mutation.Mutation{c.want}) {
				t.Errorf("got %+v, %v\nwant %+v", got, fault, c.want)
			}
		})
	}
}

// TestKeysThatAreNoIDs: a key that is JSON or has a schema names no node unless the mapping finds an id
// in it, and the dead letter says what to map.
func TestKeysThatAreNoIDs(t *testing.T) {
	for name, c := range map[string]struct{ id, key, says string }{
		"another column":        {"id", debeziumKey, `without the field "id", in which the path of ingest.nodes.id ends`},
		"a column that is null": {"sku", `{"sku":null}`, `without the field "sku"`},
		"a JSON string":         {"sku", `"P00005"`, "without quotes"},
		"a JSON list":           {"sku", `["P00005"]`, "no object"},
		"an Avro key":           {"sku", "\x00\x00\x00\x00\x07\x0cP00005", "ingest.nodes.format is json"},
		"a path to an element":  {"skus[0]", debeziumKey, "is an object without the field"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, value := range [][]byte{nil, []byte(`{"name":"pen"}`)} {
				r := record(c.key, "")
				r.Value = value
				got, fault := nodes(t, decode.NodeMapping{ID: c.id}).Decode(r, nil)
				if fault == nil || fault.Code != decode.MissingID || !strings.Contains(fault.Message, c.says) || got != nil {
					t.Errorf("value %s: got %+v, %v; want %s with %q", value, got, fault, decode.MissingID, c.says)
				}
			}
		})
	}
}
