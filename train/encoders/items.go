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

// The tensors of directions: hashes of ids as above, the rows that belong to them, and what their sums are scaled by.
const (
	directedItems  = "direction_items"
	directionsName = "directions"
	directionScale = "direction_scale"
)

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
	return []safetensors.Tensor{hashTensor(n.items, v.Hashes()),
		{Name: n.rows, Shape: []int{len(v.Hashes()), v.Dim()}, BFloat16: v.Rows()},
		{Name: n.weight, Shape: []int{1}, Float32: []float32{v.Weight()}}}
}

// hashTensor has the upper and lower half of each hash.
func hashTensor(name string, hashes []uint64) safetensors.Tensor {
	halves := make([]int32, 0, 2*len(hashes))
	for _, h := range hashes {
		halves = append(halves, int32(uint32(h>>32)), int32(uint32(h)))
	}
	return safetensors.Tensor{Name: name, Shape: []int{len(hashes), 2}, Int32: halves}
}

// loadRows reads hashes, and a row of numbers for each.
func loadRows(a *safetensors.Archive, items, rows string) (hashes []uint64, halves []uint16, dim int, err error) {
	shape, _ := a.Shape(rows)
	numbers, err := a.Float32(rows, shape...)
	if err != nil || len(shape) != 2 {
		return nil, nil, 0, fmt.Errorf("%w: %s of the shape %v: %w", ErrCorrupt, rows, shape, err)
	}
	parts, err := a.Int32(items, shape[0], 2)
	if err != nil {
		return nil, nil, 0, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	hashes = make([]uint64, shape[0])
	for k := range hashes {
		hashes[k] = uint64(uint32(parts[2*k]))<<32 | uint64(uint32(parts[2*k+1]))
	}
	halves = make([]uint16, len(numbers))
	for k, v := range numbers {
		halves[k] = numeric.BF16(v)
	}
	return hashes, halves, shape[1], nil
}

// loadItems reads a view of items.
func loadItems(a *safetensors.Archive, n itemNames) (*hybrid.ItemView, error) {
	hashes, rows, dim, err := loadRows(a, n.items, n.rows)
	if err != nil {
		return nil, err
	}
	weight, err := a.Float32(n.weight, 1)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return checked(hybrid.NewItemView(weight[0], dim, hashes, rows))
}

func directionTensors(d *hybrid.Directions) []safetensors.Tensor {
	return []safetensors.Tensor{hashTensor(directedItems, d.Hashes()),
		{Name: directionsName, Shape: []int{len(d.Hashes()), d.Dim()}, BFloat16: d.Rows()},
		{Name: directionScale, Shape: []int{d.Dim()}, Float32: d.Scale()}}
}

func loadDirections(a *safetensors.Archive) (*hybrid.Directions, error) {
	hashes, rows, dim, err := loadRows(a, directedItems, directionsName)
	if err != nil {
		return nil, err
	}
	scale, err := a.Float32(directionScale, dim)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return checked(hybrid.NewDirections(hashes, rows, scale))
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
