package generation

import (
	"giantstream/train"
	"giantstream/train/bag"
	"giantstream/train/bert"
	"giantstream/train/linkpred"
	"giantstream/train/xrt"
)

// rival returns the network that link prediction trains, an encoder that shares
// its weights, and options that suit it.
func (f *building) rival() (xrt.Network, train.Encoder, linkpred.Options, error) {
	s := f.doc.Settings
	if s.Encoder == bert.Kind {
		l, err := f.learner(func(dim int) (*bag.Model, error) { return f.startTable(nil, dim) })
		if err != nil {
			return nil, nil, linkpred.Options{}, err
		}
		return l, l.encoder, linkpred.Options{}, nil
	}
	// The same table, rate and epochs as the bag that learns neighbourhoods.
	const rows, epochs, batch, rate, patience = 1 << 16, 10, 256, 0.01, 3
	start, err := bag.Start(f.features, f.projection, nil, f.pifaDim, rows, f.Workers)
	if err != nil {
		return nil, nil, linkpred.Options{}, err
	}
	if err := f.readError(); err != nil {
		return nil, nil, linkpred.Options{}, err
	}
	net, err := bag.NewNetwork(f.vectorizer, start, bag.NetworkOptions{Workers: f.Workers})
	if err != nil {
		return nil, nil, linkpred.Options{}, err
	}
	encoder, err := net.Encoder()
	return net, encoder, linkpred.Options{Epochs: epochs, Batch: batch, Rate: rate, Patience: patience}, err
}
