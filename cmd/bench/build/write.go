package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// write writes the graph as JSON lines, each link once.
func (g graph) write(dir string) error {
	nodes, err := newLines(filepath.Join(dir, "nodes.jsonl.gz"))
	if err != nil {
		return err
	}
	edges, err := newLines(filepath.Join(dir, "edges.jsonl.gz"))
	if err != nil {
		return err
	}
	for i := range g.nodes {
		r := g.row(i)
		err := nodes.Encode(map[string]any{"id": r.NodeID, "text": r.Text, "label": r.Class, "at": 1})
		for _, l := range r.Labels {
			if r.NodeID < l {
				err = errors.Join(err, edges.Encode(map[string]any{"src": r.NodeID, "dst": l, "at": 1}))
			}
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(nodes.close(), edges.close())
}

// lines is a compressed file of JSON lines.
type lines struct {
	*json.Encoder
	file   *os.File
	buffer *bufio.Writer
	gzip   *gzip.Writer
}

func newLines(path string) (*lines, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	l := &lines{file: file, buffer: bufio.NewWriterSize(file, 1<<20)}
	if l.gzip, err = gzip.NewWriterLevel(l.buffer, gzip.BestSpeed); err != nil {
		return nil, err
	}
	l.Encoder = json.NewEncoder(l.gzip)
	return l, nil
}

func (l *lines) close() error { return errors.Join(l.gzip.Close(), l.buffer.Flush(), l.file.Close()) }
