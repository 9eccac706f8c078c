package encoders

import (
	"fmt"

	"giantstream/train"
	"giantstream/train/encoders/bag"
	"giantstream/train/encoders/bert"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/encoders/linear"
	"giantstream/train/encoders/safetensors"
)

// Each kind of encoder has a case in tensorsOf, which says what of it is stored, and one in build, which makes it of
// that again.

// tensorsOf are the encoder's own tensors. Those of a BERT are in files of
// their own, but for its rotation, which from_pretrained knows nothing of.
func tensorsOf(e train.Encoder) ([]safetensors.Tensor, error) {
	switch e := e.(type) {
	case *linear.LSA:
		return nil, nil
	case *bert.Encoder:
		return rotationTensors(e), nil
	case *linear.Encoder:
		w := e.Weights()
		return []safetensors.Tensor{{Name: "weights", Shape: []int{len(w) / e.Dim(), e.Dim()}, Float32: w}}, nil
	case *hybrid.Encoder:
		return hybridTensors(e)
	case *bag.Encoder:
		return tableTensors(e.Model()), nil
	}
	return nil, fmt.Errorf("%w: cannot save a %q", ErrUnknown, e.Kind())
}

// build makes an encoder of its tensors. One of a BERT is made by openBERT, which also reads the files of the model.
func build(c Config, a *safetensors.Archive, v train.Vectorizer, p train.Projection) (train.Encoder, error) {
	if p == nil && c.Kind != bag.Kind {
		return nil, fmt.Errorf("%w: a %q needs its projection", ErrMismatch, c.Kind)
	}
	switch c.Kind {
	case linear.LSAKind:
		return checked(linear.NewLSA(v, p, c.Dim))
	case linear.Kind:
		w, err := a.Float32("weights", c.Rank, c.Dim)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		return checked(linear.New(v, p, w, c.Dim))
	case hybrid.Kind:
		return loadHybrid(c, a, v, p, nil)
	case bag.Kind:
		m, err := loadTable(c, a)
		if err != nil {
			return nil, err
		}
		return checked(bag.NewEncoder(v, m))
	}
	return nil, fmt.Errorf("%w: kind %q", ErrUnknown, c.Kind)
}

func hybridTensors(e *hybrid.Encoder) ([]safetensors.Tensor, error) {
	v := e.Views()
	out := tableTensors(v.Table)
	if b := transformer(e); b != nil {
		out = append(out, rotationTensors(b)...)
	} else if v.Model != nil {
		return nil, fmt.Errorf("%w: cannot save a %q beside n-grams", ErrUnknown, v.Model.Kind())
	}
	if v.Behaviour != nil {
		out = append(out, itemTensors(v.Behaviour, behaviourNames)...)
	}
	if v.Directions != nil {
		out = append(out, directionTensors(v.Directions)...)
	}
	for _, own := range v.Vectors {
		m := own.Map
		out = append(out, itemTensors(own.Items, vectorNames(own.Name))...)
		out = append(out,
			safetensors.Tensor{Name: vectorPrefix + own.Name + meanSuffix, Shape: []int{m.Len()}, Float32: m.Mean()},
			safetensors.Tensor{Name: vectorPrefix + own.Name + axesSuffix, Shape: []int{m.Len(), m.Dim()},
				Float32: m.Axes()},
			safetensors.Tensor{Name: vectorPrefix + own.Name + metricSuffix, Shape: []int{m.Dim(), m.Dim()},
				Float32: own.Metric},
			safetensors.Tensor{Name: vectorPrefix + own.Name + inputSuffix, Shape: []int{1}, Int32: []int32{own.Input}})
	}
	return append(out,
		safetensors.Tensor{Name: "weights", Shape: []int{v.Projection.Dim(), v.TextDim()}, Float32: v.Solution},
		safetensors.Tensor{Name: "text_weight", Shape: []int{1}, Float32: []float32{v.TextWeight}},
		safetensors.Tensor{Name: joinName, Shape: []int{v.Len(), e.Dim()}, Float32: e.Join()}), nil
}

func tableTensors(m *bag.Model) []safetensors.Tensor {
	f := m.Features()
	return []safetensors.Tensor{
		{Name: "features", Shape: []int{len(f)}, Int32: f},
		{Name: "vectors", Shape: []int{len(f), m.Dim()}, Float32: m.Vectors()},
	}
}

func rotationTensors(e *bert.Encoder) []safetensors.Tensor {
	if e.Rotation() == nil {
		return nil
	}
	return []safetensors.Tensor{{Name: rotationName, Shape: []int{e.Dim(), e.Dim()}, Float32: e.Rotation()}}
}

// loadHybrid reads the views of a hybrid and joins them; model is nil for none.
func loadHybrid(c Config, a *safetensors.Archive, v train.Vectorizer, p train.Projection,
	model train.Encoder) (train.Encoder, error) {
	shape, _ := a.Shape("weights")
	if len(shape) != 2 || shape[0] != c.Rank {
		return nil, fmt.Errorf("%w: weights have the shape %v, the projection the rank %d", ErrCorrupt, shape, c.Rank)
	}
	table, err := loadTable(c, a)
	if err != nil {
		return nil, err
	}
	solution, err := a.Float32("weights", shape...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	weight, err := a.Float32("text_weight", 1)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	views := hybrid.Views{Vectorizer: v, Projection: p, Table: table, Solution: solution, TextWeight: weight[0],
		Model: model}
	if _, has := a.Shape(behaviourNames.rows); has {
		if views.Behaviour, err = loadItems(a, behaviourNames); err != nil {
			return nil, err
		}
	}
	if _, has := a.Shape(directionsName); has {
		if views.Directions, err = loadDirections(a); err != nil {
			return nil, err
		}
	}
	if views.Vectors, err = loadVectors(a); err != nil {
		return nil, err
	}
	join, err := a.Float32(joinName, views.Len(), c.Dim)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return checked(hybrid.New(views, join, c.Dim))
}

// joinName is the tensor that says that n-grams and the text stand beside a transformer.
const joinName = "join"

// loadTable reads the n-grams' vectors.
func loadTable(c Config, a *safetensors.Archive) (*bag.Model, error) {
	shape, _ := a.Shape("features")
	features, err := a.Int32("features", shape...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	vectors, err := a.Float32("vectors", len(features), c.Dim)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return checked(bag.NewModel(features, vectors, c.Features, c.Dim))
}

// checked marks an error of a constructor as corruption, because the sizes have been compared with
// the configuration before.
func checked[E any](e E, err error) (E, error) {
	if err != nil {
		var none E
		return none, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return e, nil
}
