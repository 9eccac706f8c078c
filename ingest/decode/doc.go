// Package decode turns the values of input records into mutations of the graph. Topics have values
// of many shapes, so a Mapping says where in the JSON the id, the text and the links are. Nodes and
// Edges return a Decoder for a topic.
//
// A record becomes mutations, or a Fault with a stable code that says why not. A record with many
// edges can become both. Decode has no other way to fail, whatever the bytes. The format is
// described for users in docs/format/input.md.
//
// The JSON is read once, by a scanner that checks all of it (RFC 8259, UTF-8, depth) but keeps only
// what the mapping names: no trees, no maps.
package decode
