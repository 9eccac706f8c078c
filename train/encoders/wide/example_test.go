package wide_test

import (
	"giantstream/train"
	"giantstream/train/encoders/bag"
	"giantstream/train/encoders/wide"
)

// A table of n-grams is put beside a network for training, and beside its encoder for use.
func Example() {
	beside := func(net train.Network, deep wide.Deep, v train.Vectorizer, x bag.Features, p train.Projection) (
		train.Network, train.Encoder, error) {
		const rows = 1 << 16
		table, err := wide.Start(x, p, nil, 0, net.Dim(), rows, 0)
		if err != nil {
			return nil, nil, err
		}
		// Package train/objectives/xrt trains the table alone (TrainTable) before it is joined.
		tuner, err := wide.NewTuner(net, x, table, wide.Options{})
		if err != nil {
			return nil, nil, err
		}
		e, err := wide.New(deep, v, table)
		return tuner, e, err
	}
	_ = beside
}
