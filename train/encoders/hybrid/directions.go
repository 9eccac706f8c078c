package hybrid

import (
	"fmt"
	"math"
	"slices"

	"giantstream/train/numeric"
)

// MostAssociations is how many associations of an item count.
const MostAssociations = 256

// trust is the number of orders of which an item's row has the length √½. It was chosen on two months of a shop's
// invoices (docs/MEASUREMENTS.md, "Orders as a view").
const trust = 10

// Directions make rows of the view of what items are ordered with, of an item's associations a_j with others:
//
//	z = √(n / (n + 10)) · r/‖r‖,   r = Λ Σ_j a_j v_j
//
// where n orders have the item, v_j are rows of the right singular vectors of a sample of the associations, and Λ has
// the inverse roots of the singular values. So an item that is ordered anew gets a row beside those that a generation
// has. Directions take 8 bytes an item and 2 a number.
type Directions struct {
	hashes []uint64 // of the ids, ascending
	rows   []uint16 // v_j as bfloat16, a row for each hash
	scale  []float32
}

// NewDirections makes directions of the rows v_j as bfloat16, which belong to hashes of ids (numeric.HashString) that
// ascend, and of the diagonal of Λ.
func NewDirections(hashes []uint64, rows []uint16, scale []float32) (*Directions, error) {
	if len(scale) == 0 || len(rows) != len(scale)*len(hashes) {
		return nil, fmt.Errorf("hybrid: %d numbers for %d items are no %d directions", len(rows), len(hashes),
			len(scale))
	}
	for k := 1; k < len(hashes); k++ {
		if hashes[k] <= hashes[k-1] {
			return nil, fmt.Errorf("hybrid: hashes of items must ascend, number %d does not", k)
		}
	}
	return &Directions{hashes, rows, scale}, nil
}

// Dim is the number of directions.
func (d *Directions) Dim() int { return len(d.scale) }

// Hashes are those of the items' ids, Rows and Scale the numbers; they are not to be changed.
func (d *Directions) Hashes() []uint64 { return d.hashes }

// Rows are the v_j, one for each of Hashes.
func (d *Directions) Rows() []uint16 { return d.rows }

// Scale is the diagonal of Λ.
func (d *Directions) Scale() []float32 { return d.scale }

// Find returns the number of the item of a hash, -1 if it has no row.
func (d *Directions) Find(hash uint64) int32 {
	if k, ok := slices.BinarySearch(d.hashes, hash); ok {
		return int32(k)
	}
	return -1
}

// Row writes the row of an item, given the number of its orders. Of its associations, which are added in their order,
// numbers are as Find returns them. It returns false, and zeros, if nothing is known of the item.
func (d *Directions) Row(numbers []int32, values []float32, orders int, out []float32) bool {
	clear(out)
	n := len(out)
	row := make([]float32, n)
	for k, j := range numbers {
		if j < 0 {
			continue
		}
		widen(d.rows[int(j)*n:(int(j)+1)*n], row)
		numeric.Axpy(values[k], row, out)
	}
	for k, s := range d.scale {
		out[k] *= s
	}
	if orders == 0 || numeric.Normalize(out) == 0 {
		clear(out)
		return false
	}
	scale(out, float32(math.Sqrt(float64(orders)/float64(orders+trust))))
	return true
}

// OrderedRow returns the row of Behaviour that an item has by its associations, as Directions.Row makes it, nil for
// none.
func (e *Encoder) OrderedRow(numbers []int32, values []float32, orders int) (row []uint16) {
	z := make([]float32, e.views.Directions.Dim())
	if e.views.Directions.Row(numbers, values, orders, z) {
		row = make([]uint16, len(z))
		for k, v := range z {
			row[k] = numeric.BF16(v)
		}
	}
	return row
}

// FollowOrders has an item have another row of Behaviour, nil for none. It is a method of what Following returns. Texts
// may be encoded beside it.
func (e *Encoder) FollowOrders(id string, row []uint16) { e.views.Behaviour.follow(id, row) }

// UnfollowOrders has an item have the row again that it had before FollowOrders.
func (e *Encoder) UnfollowOrders(id string) { e.views.Behaviour.unfollow(id) }

// Ordered returns the row of Behaviour that an item has now, and its own, which it has without FollowOrders: nil for
// none.
func (e *Encoder) Ordered(id string) (now, own []uint16) {
	return e.views.Behaviour.row(id), e.views.Behaviour.initialRow(numeric.HashString(id))
}
