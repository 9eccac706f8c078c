package decode_test

import (
	"fmt"

	"giantstream/ingest/decode"
)

func Example() {
	mapping := decode.NodeMapping{
		ID:    "asin",
		Text:  []string{"title", "brand"},
		Edges: []decode.EdgePath{{Kind: "also_bought", Path: "related.also_bought[*]"}},
	}
	limits := decode.Limits{RecordBytes: 1 << 20, TextBytes: 256 << 10, EdgesPerRecord: 10_000}
	nodes, err := decode.Nodes(mapping, limits, 1)
	if err != nil {
		return
	}
	mutations, fault := nodes.Decode(decode.Record{Value: []byte(
		`{"asin": "B001", "title": "Tent", "brand": "Acme", "related": {"also_bought": ["B002", "B003"]}}`,
	)}, nil)
	fmt.Printf("%q %q %v\n", mutations[0].ID, mutations[0].Text, mutations[0].Others)
	fmt.Println(fault == nil)

	_, fault = nodes.Decode(decode.Record{Value: []byte(`{"title": "Tent"}`)}, nil)
	fmt.Println(fault)
	// Output:
	// "B001" "Tent\nAcme" [B002 B003]
	// true
	// missing_id: no id in the value, and the record has no key
}
