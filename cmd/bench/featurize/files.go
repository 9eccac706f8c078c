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
	"giantstream/featurize/sparse"
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

// readMatrix reads what save of pecos_stage.py wrote.
func readMatrix(work, name string) (*sparse.Matrix, error) {
	at := filepath.Join(work, name)
	shape, err := readArray[int64](at + ".shape")
	if err != nil {
		return nil, err
	}
	m := &sparse.Matrix{Rows: int(shape[0]), Cols: int(shape[1])}
	if m.Start, err = readArray[int64](at + ".start"); err != nil {
		return nil, err
	}
	if m.Index, err = readArray[int32](at + ".index"); err != nil {
		return nil, err
	}
	m.Value, err = readArray[float32](at + ".value")
	return m, err
}

func readArray[T int32 | int64 | float32](path string) ([]T, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var one T
	v := make([]T, len(b)/binary.Size(one))
	_, err = binary.Decode(b, binary.LittleEndian, v)
	return v, err
}

func writeLeaves(path string, t *labeltree.Tree) error {
	var b []byte
	for label := range t.Labels() {
		b = binary.LittleEndian.AppendUint32(b, uint32(t.Cluster(0, label)))
	}
	return os.WriteFile(path, b, 0o644)
}
