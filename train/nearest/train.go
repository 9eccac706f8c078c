package nearest

import (
	"math"
	"slices"

	"giantstream/internal/parallel"
	"giantstream/train/numeric"
)

const (
	// Recall is the share of the nearest ten that a query of all vectors finds, in the mean over those that Calibrate
	// asks. These are in the index; of others a percent less is found.
	Recall = 0.99
	// Missed is the share of its answers that a query of some vectors is expected to miss when it ends.
	Missed = 0.005

	minTrained  = 20_000 // vectors; fewer are searched as a whole in a millisecond or two
	perCell     = 32     // vectors of the sample that a cell's centre is trained on
	iterations  = 4
	measured    = 100 // queries
	nearest     = 10
	assignBatch = 1024
)

// Sample returns how many of n vectors Train wants: those at i·n/Sample(n).
func Sample(n int) int {
	if n < minTrained {
		return 0
	}
	return min(n, perCell*cellsOf(n))
}

// cellsOf returns the number of cells for n vectors: comparing a query with the centres then costs about as much
// as looking into the cells.
func cellsOf(n int) int { return int(2 * math.Sqrt(float64(n))) }

// Train divides an empty index into cells for n vectors like those of the sample (Sample(n) × dim, changed). Then
// Calibrate, once the vectors are there, says how many cells a query looks into; until then it is all of them.
func (x *Index) Train(n int, sample []float32) {
	rows := len(sample) / x.dim
	cells := min(cellsOf(n), rows)
	if n < minTrained || cells < 2 {
		return
	}
	for i := range rows {
		numeric.Normalize(sample[i*x.dim : (i+1)*x.dim])
	}
	// Spherical k-means from vectors at equal distances in the sample.
	centers := make([]float32, cells*x.dim)
	for c := range cells {
		at := c * rows / cells
		copy(centers[c*x.dim:(c+1)*x.dim], sample[at*x.dim:(at+1)*x.dim])
	}
	x.cells, x.probes = make([]cell, cells), cells
	x.centers, x.scales = make([]int8, cells*x.width), make([]float32, cells)
	x.setCenters(centers)
	for range iterations {
		own := x.assign(sample)
		sums := make([]float32, len(centers))
		for i, c := range own {
			numeric.Axpy(1, sample[i*x.dim:(i+1)*x.dim], sums[int(c)*x.dim:int(c+1)*x.dim])
		}
		for c := range cells { // an empty one keeps its centre
			if sum := sums[c*x.dim : (c+1)*x.dim]; numeric.Normalize(sum) > 0 {
				copy(centers[c*x.dim:(c+1)*x.dim], sum)
			}
		}
		x.setCenters(centers)
	}
}

// assign returns the cell of each of some unit vectors. It does not depend on what other vectors there are.
func (x *Index) assign(unit []float32) []int32 {
	out := make([]int32, len(unit)/x.dim)
	if len(x.cells) == 1 {
		return out
	}
	parallel.ForEach(len(out), assignBatch, 0, func(_, _, lo, hi int) {
		scores := make([]float32, len(x.cells))
		for i := lo; i < hi; i++ {
			x.scores(scores, unit[i*x.dim:(i+1)*x.dim])
			for c, s := range scores {
				if s > scores[out[i]] {
					out[i] = int32(c)
				}
			}
		}
	})
	return out
}

// scores sets out to the inner products of a unit vector with all centres.
func (x *Index) scores(out []float32, unit []float32) {
	query := make([]int16, x.width)
	scale := round(query, unit)
	sums := make([]int32, len(out))
	products(sums, query, x.centers)
	for c, sum := range sums {
		out[c] = float32(sum) * (x.scales[c] * scale)
	}
}

// ordered is a cell, and the score of its centre.
type ordered struct {
	cell  int32
	score float32
}

// order returns the cells, those first whose centres are nearest to a unit vector, by sixteen bits of the score. To
// sort by comparisons takes longer than to look into the few cells that most queries need.
func (x *Index) order(unit []float32) []ordered {
	scores := make([]float32, len(x.cells))
	if len(x.cells) > 1 {
		x.scores(scores, unit)
	}
	keys, next := make([]uint64, len(scores)), make([]uint64, len(scores))
	for c, s := range scores { // how far the score lies below 1, before the number of the cell
		keys[c] = uint64(min(max(int((1-s)*(1<<15)), 0), math.MaxUint16))<<32 | uint64(c)
	}
	for _, shift := range []int{32, 40} { // by the lower byte, then by the upper one
		var at [256]int32
		for _, key := range keys {
			at[uint8(key>>shift)]++
		}
		sum := int32(0)
		for b, n := range at {
			at[b], sum = sum, sum+n
		}
		for _, key := range keys {
			b := uint8(key >> shift)
			next[at[b]] = key
			at[b]++
		}
		keys, next = next, keys
	}
	order := make([]ordered, len(keys))
	for i, key := range keys {
		c := int32(uint32(key))
		order[i] = ordered{c, scores[c]}
	}
	return order
}

// Calibrate measures how many cells a query of all vectors must look into, and, by which queries of some know when to
// end, how far the scores of a cell's vectors lie above that of its centre. It asks for vectors of the index, at equal
// distances in the order of their ids, and the truth is a search of all cells.
func (x *Index) Calibrate() {
	if len(x.cells) == 1 || x.vectors == 0 {
		return
	}
	ids := make([]string, 0, x.vectors)
	for h, id := range x.ids {
		if isIn(x.has, int32(h)) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	queries := min(measured, len(ids))
	var counts [ranks][steps]int
	found := make([]int, len(x.cells)) // of the nearest ten, by the place of their cell in the order
	total := 0
	for q := range queries {
		for _, i := range x.sample(ids[q*len(ids)/queries], &counts) {
			found[i]++
			total++
		}
	}
	x.tails = newTails(&counts)
	sum := 0
	for i, n := range found {
		if sum += n; float64(sum) >= Recall*float64(total) {
			x.probes = i + 1
			return
		}
	}
}

// sample asks for the nearest of a vector of the index in all cells, and returns where in the order of the cells they
// are. It counts how far the scores of all lie above those of their cells' centres.
func (x *Index) sample(id string, counts *[ranks][steps]int) (cells []int) {
	unit := make([]float32, x.dim)
	x.vector(x.handle[id], unit)
	numeric.Normalize(unit)
	s := x.newSearch(unit, nearest+1, nil)
	place := make([]int, len(x.cells)) // in the order, by cell
	for i, c := range x.order(unit) {
		place[c.cell] = i
		left := int(x.cells[c.cell].n)
		for _, b := range x.cells[c.cell].blocks {
			var sums [blockRows]int32
			rows := min(left, blockRows)
			left -= rows
			products(sums[:rows], s.query, b.codes)
			for r, sum := range sums[:rows] {
				s.offer(b, r, sum)
				if x.ids[b.handles[r]] != id {
					counts[rank(i)][step(float32(sum)*(b.scales[r]*s.scale)-c.score)]++
				}
			}
		}
	}
	others := slices.DeleteFunc(s.done(), func(n Neighbour) bool { return n.ID == id })
	for _, n := range others[:min(nearest, len(others))] {
		cells = append(cells, place[x.where[x.handle[n.ID]].cell])
	}
	return cells
}

// setCenters takes over centres, cells × dim.
func (x *Index) setCenters(centers []float32) {
	for c := range x.cells {
		x.scales[c] = encode(x.centers[c*x.width:(c+1)*x.width], nil, centers[c*x.dim:(c+1)*x.dim])
	}
}
