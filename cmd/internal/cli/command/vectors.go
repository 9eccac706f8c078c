package command

import (
	"context"
	"math"

	"giantstream/ingest/client"
	"giantstream/sink"
	"giantstream/stream/commitlog"
)

// VectorView is a vector that records have stated of a node.
type VectorView struct {
	Name string `json:"name"`
	// Input is the number of the input that states it.
	Input  int32   `json:"input"`
	Length int     `json:"length"`
	Norm   float64 `json:"norm"`
	// First are its first numbers.
	First []float32 `json:"first"`
}

// firstNumbers is how many numbers of a vector are shown.
const firstNumbers = 3

// FindVectors returns what inputs have stated of a node's vectors.
func FindVectors(ctx context.Context, store sink.Store, shards int, id string) (all []VectorView, err error) {
	cut, err := commitlog.CurrentCut(ctx, store, shards)
	if err != nil {
		return nil, err
	}
	for row, err := range cut.Vectors(ctx, store, client.Partition([]byte(id), shards)) {
		if err != nil {
			return nil, err
		}
		if row.NodeID != id {
			continue
		}
		for i, name := range row.Names {
			numbers := row.Numbers(i)
			square := 0.0
			for _, x := range numbers {
				square += float64(x) * float64(x)
			}
			all = append(all, VectorView{name, row.Input, len(numbers), math.Sqrt(square),
				numbers[:min(len(numbers), firstNumbers)]})
		}
	}
	return all, nil
}
