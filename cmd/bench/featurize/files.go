package main

import (
	"encoding/binary"
	"os"
	"path/filepath"

	"giantstream/featurize/graphdir"
	"giantstream/featurize/labeltree"
)

func readTexts(data string) (texts []string, err error) {
	for node, err := range graphdir.Lines[struct{ Text string }](filepath.Join(data, "nodes.jsonl.gz")) {
		if err != nil {
			return nil, err
		}
		texts = append(texts, node.Text)
	}
	return texts, nil
}

func writeLeaves(path string, t *labeltree.Tree) error {
	var b []byte
	for label := range t.Labels() {
		b = binary.LittleEndian.AppendUint32(b, uint32(t.Cluster(0, label)))
	}
	return os.WriteFile(path, b, 0o644)
}
