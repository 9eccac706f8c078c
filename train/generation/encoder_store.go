package generation

import (
	"context"
	"fmt"
	"io"
	"slices"

	"giantstream/featurize/projection"
	"giantstream/featurize/tfidf"
	"giantstream/sink"
	"giantstream/train"
	"giantstream/train/bag"
	"giantstream/train/linear"
	"giantstream/train/safetensors"
)

const modelName = "encoder/model.safetensors"

func saveEncoder(ctx context.Context, store sink.Store, g int64, e train.Encoder) (int64, error) {
	var tensors []safetensors.Tensor
	switch e := e.(type) {
	case *linear.Encoder:
		w := e.Weights()
		tensors = []safetensors.Tensor{{Name: "weights", Shape: []int{len(w) / e.Dim(), e.Dim()}, Float32: w}}
	case *bag.Encoder:
		m := e.Model()
		tensors = []safetensors.Tensor{
			{Name: "features", Shape: []int{len(m.Features())}, Int32: m.Features()},
			{Name: "vectors", Shape: []int{len(m.Features()), m.Dim()}, Float32: m.Vectors()}}
	}
	f, err := safetensors.New(tensors, map[string]string{"kind": e.Kind()})
	if err != nil {
		return 0, err
	}
	return f.Size(), save(ctx, store, Prefix(g)+modelName, func(w io.Writer) error { _, err := f.WriteTo(w); return err })
}

func loadEncoder(ctx context.Context, store sink.Store, g int64, v *tfidf.Model, p *projection.Projection) (train.Encoder, error) {
	object, err := store.Open(ctx, Prefix(g)+modelName)
	if err != nil {
		return nil, err
	}
	defer object.Close()
	a, err := safetensors.Open(object, object.Size())
	if err != nil {
		return nil, err
	}
	if slices.Contains(a.Names(), "weights") {
		shape, _ := a.Shape("weights")
		w, err := a.Float32("weights", shape...)
		if err != nil {
			return nil, err
		}
		return linear.New(v, p, w, shape[1])
	}
	shape, ok := a.Shape("vectors")
	if !ok || len(shape) != 2 {
		return nil, fmt.Errorf("no encoder in %s", modelName)
	}
	features, err := a.Int32("features", shape[0])
	if err != nil {
		return nil, err
	}
	vectors, err := a.Float32("vectors", shape...)
	if err != nil {
		return nil, err
	}
	m, err := bag.NewModel(features, vectors, v.Dim(), shape[1])
	if err != nil {
		return nil, err
	}
	return bag.NewEncoder(v, m)
}
