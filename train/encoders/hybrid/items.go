package hybrid

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"giantstream/train/numeric"
)

// ItemView is a view of items that their texts do not give: a row of at most the length 1 for each item that has one,
// which is longer the more is known of the item. It takes 8 bytes an item and 2 a number.
type ItemView struct {
	weight float32
	dim    int
	hashes []uint64 // of the ids, ascending
	rows   []uint16 // bfloat16, dim for each hash

	// newer are rows ([]uint16) that count in place of those above, by hashes of ids, nil for none any more. Only what
	// following returns has it.
	newer *sync.Map
}

// NewItemView makes a view of rows of dim numbers as bfloat16, which belong to hashes of ids (numeric.HashString) that
// ascend. weight is the length of a row of length 1 beside that of all other views together.
func NewItemView(weight float32, dim int, hashes []uint64, rows []uint16) (*ItemView, error) {
	if dim < 1 || len(rows) != dim*len(hashes) || !(weight > 0) || math.IsInf(float64(weight), 0) {
		return nil, fmt.Errorf("hybrid: %d numbers for %d items and the weight %v are no view of dimension %d",
			len(rows), len(hashes), weight, dim)
	}
	for k := 1; k < len(hashes); k++ {
		if hashes[k] <= hashes[k-1] {
			return nil, fmt.Errorf("hybrid: hashes of items must ascend, number %d does not", k)
		}
	}
	return &ItemView{weight: weight, dim: dim, hashes: hashes, rows: rows}, nil
}

// Dim is the dimension of the view, 0 for none.
func (b *ItemView) Dim() int {
	if b == nil {
		return 0
	}
	return b.dim
}

// Weight is the length of a row of length 1 beside that of all other views together.
func (b *ItemView) Weight() float32 { return b.weight }

// WithWeight returns the same rows with another weight.
func (b *ItemView) WithWeight(weight float32) *ItemView {
	v := *b
	v.weight = weight
	return &v
}

// following returns the same view, in which follow replaces rows.
func (b *ItemView) following() *ItemView {
	if b == nil {
		return nil
	}
	v := *b
	v.newer = new(sync.Map)
	return &v
}

// follow has an item have another row, or none. Rows may be read beside it.
func (b *ItemView) follow(id string, row []uint16) { b.newer.Store(numeric.HashString(id), row) }

// unfollow has an item have its own row again.
func (b *ItemView) unfollow(id string) { b.newer.Delete(numeric.HashString(id)) }

// Hashes are those of the items' ids, not to be changed.
func (b *ItemView) Hashes() []uint64 { return b.hashes }

// Rows are the numbers of each item as bfloat16, not to be changed.
func (b *ItemView) Rows() []uint16 { return b.rows }

// Row writes the row of an item, zeros if it has none.
func (b *ItemView) Row(id string, out []float32) { widen(b.row(id), out) }

// row returns the row of an item, nil if it has none.
func (b *ItemView) row(id string) []uint16 {
	hash := numeric.HashString(id)
	if b.newer != nil {
		if newer, is := b.newer.Load(hash); is {
			return newer.([]uint16)
		}
	}
	return b.initialRow(hash)
}

// initialRow is the row that the view was made with.
func (b *ItemView) initialRow(hash uint64) []uint16 {
	if k, ok := slices.BinarySearch(b.hashes, hash); ok {
		return b.rows[k*b.dim : (k+1)*b.dim]
	}
	return nil
}

// square is the square of the length of an item's row, times the weight.
func (b *ItemView) square(id string) (sum float32) {
	for _, v := range b.row(id) {
		x := numeric.FromBF16(v)
		sum += x * x
	}
	return sum * b.weight * b.weight
}

// widen writes a row, zeros for nil.
func widen(row []uint16, out []float32) {
	clear(out)
	for k, v := range row {
		out[k] = numeric.FromBF16(v)
	}
}
