package xrlinear

import (
	"math/bits"
	"slices"
)

// chunk is the classifiers of the children of one parent, by feature: the
// weights of feature features[r] are entry[start[r]:start[r+1]] and the same
// range of weight. table finds r for a feature.
type chunk struct {
	bias   []float32 // by child
	table  []slot
	shift  uint8
	start  []int32
	entry  []int32 // child, from 0 within the chunk
	weight []float32
}

// slot is an entry of the hash table: linear probing, empty if row is -1.
type slot struct{ feature, row int32 }

func newChunk(children []classifier) chunk {
	var c chunk
	total := 0
	for _, child := range children {
		c.bias = append(c.bias, child.bias)
		total += len(child.Index)
	}
	features := make([]int32, 0, total)
	for _, child := range children {
		features = append(features, child.Index...)
	}
	slices.Sort(features)
	features = slices.Clip(slices.Compact(features))
	c.index(features)
	c.start = make([]int32, len(features)+1)
	for _, child := range children {
		for _, j := range child.Index {
			c.start[c.row(j)+1]++
		}
	}
	for r := range features {
		c.start[r+1] += c.start[r]
	}
	c.entry, c.weight = make([]int32, total), make([]float32, total)
	next := slices.Clone(c.start)
	for k, child := range children {
		for at, j := range child.Index {
			r := c.row(j)
			c.entry[next[r]], c.weight[next[r]] = int32(k), child.Value[at]
			next[r]++
		}
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
		for at := c.start[r]; at < c.start[r+1]; at++ {
			out[c.entry[at]] += v * c.weight[at]
		}
	}
}
