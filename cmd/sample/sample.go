package sample

import (
	"embed"
	"io/fs"
)

//go:generate go run ./gen -out .

// Names of the two files in Files: gzipped JSON lines.
const (
	// NodesFile has a line {"id","text","label"} per node, ascending by id.
	NodesFile = "nodes.jsonl.gz"
	// EdgesFile has a line {"src","dst","kind"} per edge, ascending by src, then dst. Every end is
	// a node.
	EdgesFile = "edges.jsonl.gz"
)

//go:embed nodes.jsonl.gz edges.jsonl.gz LICENSE
var files embed.FS

// Files returns the sample graph: NodesFile, EdgesFile and the LICENSE of the texts.
func Files() fs.FS { return files }
