package xrlinear

import (
	"math/bits"
	"slices"
)

// chunk is the classifiers of the children of one parent, by feature: the
// weights of row r's feature are cells[start[r]:start[r+1]]. table finds r for
// a feature.
type chunk struct {
	bias  []float32 // by child
	table []slot
	shift uint8
	start []int32
	cells []cell
}

// cell is a weight of a child, from 0 within the chunk.
type cell struct {
	child  int32
	weight float32
}

// slot is an entry of the hash table: linear probing, empty if row is -1.
type slot struct{ feature, row int32 }

// newChunk puts the parts of a parent's children together. Rows are in the
// order of the parts' columns.
func newChunk(l *local, parts []part) chunk {
	var c chunk
	row := make([]int32, l.cols+len(l.ownIndex)+1) // by column: entries, then row+1
	total := 0
	for _, p := range parts {
		c.bias = append(c.bias, p.bias...)
		total += len(p.column)
		for _, j := range p.column {
			row[j]++
		}
	}
	var features []int32
	c.start = append(c.start, 0)
	for j, n := range row {
		if n == 0 {
			continue
		}
		features = append(features, l.name(j))
		c.start = append(c.start, c.start[len(c.start)-1]+n)
		row[j] = int32(len(features))
	}
	c.index(features)
	c.cells = make([]cell, total)
	next := slices.Clone(c.start)
	first := int32(0)
	for _, p := range parts {
		for at, j := range p.column {
			r := row[j] - 1
			c.cells[next[r]] = cell{first + p.child[at], p.weight[at]}
			next[r]++
		}
		first += int32(len(p.bias))
	}
	return c
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

// row returns the row of a feature, -1 if no child has it.
func (c *chunk) row(feature int32) int32 {
	at := c.home(feature)
	for {
		s := c.table[at]
		if s.row < 0 || s.feature == feature {
			return s.row
		}
		at = (at + 1) & (len(c.table) - 1)
	}
}

// scores writes the children's ⟨w, x⟩ + b.
func (c *chunk) scores(index []int32, value []float32, out []float32) {
	copy(out, c.bias)
	for k, j := range index {
		r := c.row(j)
		if r < 0 {
			continue
		}
		v := value[k]
		for _, w := range c.cells[c.start[r]:c.start[r+1]] {
			out[w.child] += v * w.weight
		}
	}
}
