package main

import (
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	"giantstream/featurize/labeltree"
)

func readTexts(data string) ([]string, error) {
	f, err := os.Open(filepath.Join(data, "nodes.jsonl.gz"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	var texts []string
	for d := json.NewDecoder(z); ; {
		var node struct{ Text string }
		if err := d.Decode(&node); errors.Is(err, io.EOF) {
			return texts, nil
		} else if err != nil {
			return nil, err
		}
		texts = append(texts, node.Text)
	}
}

func writeLeaves(path string, t *labeltree.Tree) error {
	var b []byte
	for label := range t.Labels() {
		b = binary.LittleEndian.AppendUint32(b, uint32(t.Cluster(0, label)))
	}
	return os.WriteFile(path, b, 0o644)
}
