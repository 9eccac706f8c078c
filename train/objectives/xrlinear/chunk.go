package xrlinear

import (
	"math/bits"
	"slices"

	"giantstream/featurize/sparse"
	"giantstream/train/numeric/lanes"
)

// chunk holds the classifiers of the children of one parent, by feature. table finds the row of a
// feature. The rows below the field rows are features for which many of the children have a weight:
// full has all weights of such a row, one per lane. Each later row r has its weights in
// cells[start[r-rows]:start[r-rows+1]].
type chunk struct {
	bias  []float32 // by child
	table []slot
	shift uint8
	rows  int32
	lanes int
	full  []float32 // rows × lanes
	start []int32
	cells []cell
}

// fullness is the share of the children with a weight for a feature from which on all weights of
// the feature are stored: a vector register handles eight weights in the time that a loop handles
// one cell.
const fullness = 4

// cell is a weight of a child, from 0 within the chunk.
type cell struct {
	child  int32
	weight float32
}

// slot is an entry of the hash table: linear probing, empty if row is -1.
type slot struct{ feature, row int32 }

// newChunk puts the parts of a parent's children together. Rows of a kind are in
// the order of the parts' columns.
func newChunk(l *local, parts []part) chunk {
	var c chunk
	count := make([]int32, l.cols+len(l.ownIndex)) // by column: weights
	for _, p := range parts {
		c.bias = append(c.bias, p.bias...)
		for _, j := range p.column {
			count[j]++
		}
	}
	if len(c.bias) <= lanes.Most {
		c.lanes = lanes.Width(len(c.bias))
	}
	whole := func(j int) bool { return int(count[j])*fullness >= c.lanes && c.lanes > 0 && count[j] > 0 }
	var features []int32
	row := make([]int32, len(count))
	for j := range count {
		if whole(j) {
			row[j] = int32(len(features))
			features = append(features, l.name(j))
		}
	}
	c.rows = int32(len(features))
	c.full = make([]float32, len(features)*c.lanes)
	c.start = append(c.start, 0)
	for j, n := range count {
		if n > 0 && !whole(j) {
			row[j] = int32(len(features))
			features = append(features, l.name(j))
			c.start = append(c.start, c.start[len(c.start)-1]+n)
		}
	}
	c.index(features)
	c.fill(parts, row)
	return c
}

// fill stores the weights. row is that of each column of the parts.
func (c *chunk) fill(parts []part, row []int32) {
	c.cells = make([]cell, c.start[len(c.start)-1])
	next := slices.Clone(c.start)
	first := int32(0)
	for _, p := range parts {
		for at, j := range p.column {
			child, r := first+p.child[at], row[j]
			if r < c.rows {
				c.full[int(r)*c.lanes+int(child)] = p.weight[at]
				continue
			}
			c.cells[next[r-c.rows]] = cell{child, p.weight[at]}
			next[r-c.rows]++
		}
		first += int32(len(p.bias))
	}
}

// weights returns the number of weights.
func (c *chunk) weights() int {
	n := len(c.cells)
	for _, w := range c.full {
		if w != 0 {
			n++
		}
	}
	return n
}

// index fills the table, at most half full.
func (c *chunk) index(features []int32) {
	size := bits.Len(uint(2*len(features) + 1))
	c.shift = uint8(64 - size)
	c.table = make([]slot, 1<<size)
	for k := range c.table {
		c.table[k].row = -1
	}
	for r, j := range features {
		at := c.home(j)
		for c.table[at].row >= 0 {
			at = (at + 1) & (len(c.table) - 1)
		}
		c.table[at] = slot{j, int32(r)}
	}
}

func (c *chunk) home(feature int32) int {
	return int(uint64(uint32(feature)) * 0x9E3779B97F4A7C15 >> c.shift)
}

// seek returns the row of a feature, -1 if no child has it. at is the feature's first slot in the
// table, s what that slot holds.
func (c *chunk) seek(feature int32, at int, s slot) int32 {
	for s.row >= 0 && s.feature != feature {
		at = (at + 1) & (len(c.table) - 1)
		s = c.table[at]
	}
	return s.row
}

// scratch is the memory of scores, for one goroutine.
type scratch struct {
	slots []slot
	sums  [lanes.Most]float32
	// The rows of the query's features, full and not, with their values.
	full, rows     []int32
	fullBy, rowsBy []float32
}

// scores writes the children's ⟨w, x⟩ + b.
func (c *chunk) scores(x sparse.Vector, s *scratch, out []float32) {
	// Load all first slots before using any, so that the processor waits for many of them at a
	// time.
	s.slots = s.slots[:0]
	for _, j := range x.Index {
		s.slots = append(s.slots, c.table[c.home(j)])
	}
	s.full, s.fullBy, s.rows, s.rowsBy = s.full[:0], s.fullBy[:0], s.rows[:0], s.rowsBy[:0]
	for k, j := range x.Index {
		r := c.seek(j, c.home(j), s.slots[k])
		switch {
		case r < 0:
		case r < c.rows:
			s.full, s.fullBy = append(s.full, r), append(s.fullBy, x.Value[k])
		default:
			s.rows, s.rowsBy = append(s.rows, r-c.rows), append(s.rowsBy, x.Value[k])
		}
	}
	copy(out, c.bias)
	if len(s.full) > 0 {
		sums := s.sums[:c.lanes]
		lanes.Project(sums, c.full, s.full, s.fullBy)
		for k := range out {
			out[k] += sums[k]
		}
	}
	for k, r := range s.rows {
		v := s.rowsBy[k]
		for _, w := range c.cells[c.start[r]:c.start[r+1]] {
			out[w.child] += v * w.weight
		}
	}
}
