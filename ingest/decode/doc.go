// Package decode turns the values of input records into mutations of the
// graph. Real topics do not look like ours, so a Mapping says where in the JSON
// the id, the text and the links are:
//
//	m := decode.Mapping{
//		Nodes: decode.NodeMapping{ID: "asin", Text: []string{"title", "brand", "description"}, Edges: "related.also_bought[*]"},
//		Edges: decode.EdgeMapping{Src: "src", Dst: "dst"},
//	}
//	nodes, err := decode.Nodes(m.Nodes, decode.DefaultLimits(), shards)
//	mutations, fault := nodes.Decode(record, mutations)
//
// A record either becomes mutations, or a Fault that says why not, with a
// stable code; a record with many edges can become both. Decode never fails in
// another way, whatever the bytes. The format is described for users in
// docs/format/input.md.
//
// The JSON is read once, by a scanner that checks all of it (RFC 8259, UTF-8,
// depth) but keeps only what the mapping names: no trees, no maps.
package decode
