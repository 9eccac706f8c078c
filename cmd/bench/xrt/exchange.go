package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"giantstream/cmd/bench/internal/stage"
	"giantstream/train"
	"giantstream/train/generation/eval"
)

// problem is what another program needs to train on the same links.
type problem struct {
	Texts []string `json:"texts"`
	// The known links of node i are at Index[Start[i]:Start[i+1]].
	Start []int64 `json:"start"`
	Index []int32 `json:"index"`
	// Instances are the nodes to train on: all nodes with links except the held-out ones.
	Instances []int32 `json:"instances"`
}

// export writes the problem of the split to problem.json in a folder.
func export(folder string, known *train.Graph, t *task) error {
	data, err := json.Marshal(problem{Texts: known.Texts, Start: known.Neighbours.Start, Index: known.Neighbours.Index,
		Instances: t.set.Instances})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "problem.json"), data, 0o600)
}

// judgeFile measures the embeddings of all nodes that another program wrote: little-endian float32,
// one row per node, in the order of the texts.
func judgeFile(path string, known *train.Graph, hidden []eval.Edge, seed uint64) (figures, error) {
	z, err := stage.ReadArray[float32](path)
	if err != nil {
		return figures{}, err
	}
	if len(z) == 0 || len(z)%known.Len() != 0 {
		return figures{}, fmt.Errorf("%s: %d numbers are no embeddings of %d nodes", path, len(z), known.Len())
	}
	return judged(z, len(z)/known.Len(), known, hidden, seed)
}
