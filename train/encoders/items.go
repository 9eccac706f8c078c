package encoders

import (
	"fmt"
	"slices"
	"strings"

	"giantstream/train/encoders/hybrid"
	"giantstream/train/encoders/safetensors"
	"giantstream/train/numeric"
)

// itemNames are the tensors of a view of items: the upper and lower halves of the hashes of ids, the rows that belong
// to them, and the weight.
type itemNames struct{ items, rows, weight string }

var behaviourNames = itemNames{"items", "behaviour", "behaviour_weight"}

// The tensors of the vector NAME are vector.NAME and what follows.
const (
	vectorPrefix = "vector."
	rowsSuffix   = ".rows"
	meanSuffix   = ".mean"
	axesSuffix   = ".axes"
	metricSuffix = ".metric"
	inputSuffix  = ".input"
)

func vectorNames(name string) itemNames {
	return itemNames{vectorPrefix + name + ".items", vectorPrefix + name + rowsSuffix, vectorPrefix + name + ".weight"}
}

func itemTensors(v *hybrid.ItemView, n itemNames) []safetensors.Tensor {
	items := make([]int32, 0, 2*len(v.Hashes()))
	for _, h := range v.Hashes() {
		items = append(items, int32(uint32(h>>32)), int32(uint32(h)))
	}
	return []safetensors.Tensor{{Name: n.items, Shape: []int{len(v.Hashes()), 2}, Int32: items},
		{Name: n.rows, Shape: []int{len(v.Hashes()), v.Dim()}, BFloat16: v.Rows()},
		{Name: n.weight, Shape: []int{1}, Float32: []float32{v.Weight()}}}
}

// loadItems reads a view of items.
func loadItems(a *safetensors.Archive, n itemNames) (*hybrid.ItemView, error) {
	shape, _ := a.Shape(n.rows)
	rows, err := a.Float32(n.rows, shape...)
	if err != nil || len(shape) != 2 {
		return nil, fmt.Errorf("%w: %s of the shape %v: %w", ErrCorrupt, n.rows, shape, err)
	}
	items, err := a.Int32(n.items, shape[0], 2)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	weight, err := a.Float32(n.weight, 1)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	hashes := make([]uint64, shape[0])
	for k := range hashes {
		hashes[k] = uint64(uint32(items[2*k]))<<32 | uint64(uint32(items[2*k+1]))
	}
	halves := make([]uint16, len(rows))
	for k, v := range rows {
		halves[k] = numeric.BF16(v)
	}
	return checked(hybrid.NewItemView(weight[0], shape[1], hashes, halves))
}

// loadVectors reads the views of the items' own vectors, in ascending order of their names.
func loadVectors(a *safetensors.Archive) (all []hybrid.VectorView, err error) {
	var names []string
	for _, tensor := range a.Names() {
		if name, is := strings.CutPrefix(tensor, vectorPrefix); is && strings.HasSuffix(name, rowsSuffix) {
			names = append(names, strings.TrimSuffix(name, rowsSuffix))
		}
	}
	slices.Sort(names)
	for _, name := range names {
		v := hybrid.VectorView{Name: name}
		if v.Items, err = loadItems(a, vectorNames(name)); err != nil {
			return nil, err
		}
		shape, _ := a.Shape(vectorPrefix + name + axesSuffix)
		axes, err := a.Float32(vectorPrefix+name+axesSuffix, shape...)
		if err != nil || len(shape) != 2 || shape[1] != v.Items.Dim() {
			return nil, fmt.Errorf("%w: axes of the vector %s, of the shape %v: %w", ErrCorrupt, name, shape, err)
		}
		mean, err := a.Float32(vectorPrefix+name+meanSuffix, shape[0])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		input, err := a.Int32(vectorPrefix+name+inputSuffix, 1)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		v.Input = input[0]
		if v.Metric, err = a.Float32(vectorPrefix+name+metricSuffix, shape[1], shape[1]); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		if v.Map, err = checked(hybrid.NewVectorMap(mean, axes)); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}
