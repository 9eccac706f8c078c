package xrt_test

import (
	"context"

	"giantstream/train"
	"giantstream/train/numeric"
	"giantstream/train/objectives/trainer"
	"giantstream/train/objectives/xmc"
	"giantstream/train/objectives/xrt"
)

// A network is trained on the neighbourhoods of a graph's nodes; afterwards it holds its best
// weights.
func ExampleTrain() {
	fineTune := func(ctx context.Context, net train.Network, g *train.Graph, tree xmc.LabelTree, instances []int32,
		validate trainer.Validate) (*xmc.Matcher, error) {
		set := xrt.Set{Neighbours: g.Neighbours, Keys: numeric.Keys(g.IDs), Tree: xmc.Finest(tree), Instances: instances}
		r, err := xrt.Train(ctx, net, set, xrt.Options{Seed: 1}, trainer.Hooks{Validate: validate}, nil)
		if err != nil {
			return nil, err
		}
		return r.Matcher, nil
	}
	_ = fineTune
}
