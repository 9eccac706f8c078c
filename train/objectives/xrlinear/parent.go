package xrlinear

import (
	"math/bits"
	"slices"

	"giantstream/train/numeric"
	"giantstream/train/numeric/lanes"
)

const (
	// spread is the number of instances from which the children of one parent
	// are divided among the goroutines, and not the parents.
	spread = 8192
	// fewLanes is how many children are trained side by side where they are divided,
	// or where the weights of more would be more than mostWeights, 2 MiB: about
	// what the second-level cache holds.
	fewLanes    = 16
	mostWeights = 1 << 19
)

// worker is one goroutine's scratch memory.
type worker struct {
	o         Options
	localizer *localizer
	descent   descent
	positives [][]int32
}

func newWorker(o Options, cols int) *worker {
	return &worker{o: o, localizer: newLocalizer(cols), descent: descent{o: o}}
}

// part is the classifiers of some children of a parent that follow each other.
type part struct {
	bias []float32
	// The weights, by column and then by child. The columns of the local matrix come first. Columns
	// that only one row has follow; their numbers continue by place in ownIndex.
	column []int32
	child  []int32 // from 0 within the part
	weight []float32
}

// train solves the problems of the children whose instances are positives.
func (w *worker) train(l *local, positives [][]int32, r numeric.Rand) part {
	w.positives = slices.Grow(w.positives[:0], len(positives))[:len(positives)]
	for c, list := range positives {
		rows := w.positives[c][:0]
		for _, i := range list {
			k, _ := slices.BinarySearch(l.rows, i)
			rows = append(rows, int32(k))
		}
		w.positives[c] = rows
	}
	w.descent.solve(&l.matrix, w.positives, r)
	return w.descent.weights(l, len(positives), w.o.Threshold)
}

// weights returns the solution without the weights below the threshold.
func (d *descent) weights(l *local, children int, threshold float32) part {
	p := part{bias: slices.Clone(d.w[:children])}
	for j := 1; j < l.cols; j++ {
		row := d.w[j*d.lanes : (j+1)*d.lanes] // lanes without a child are 0
		for which := lanes.AtLeast(row, threshold); which != 0; which &= which - 1 {
			c := bits.TrailingZeros64(which)
			p.add(int32(j), c, row[c])
		}
	}
	for k, most := range l.ownMost {
		beta := d.beta[k*d.lanes : k*d.lanes+children]
		if most*largest(beta) < threshold {
			continue
		}
		for at := l.ownStart[k]; at < l.ownStart[k+1]; at++ {
			for c, b := range beta {
				if v := b * l.ownValue[at]; v >= threshold || v <= -threshold {
					p.add(int32(l.cols)+int32(at), c, v)
				}
			}
		}
	}
	return p
}

func (p *part) add(column int32, child int, weight float32) {
	p.column, p.child, p.weight = append(p.column, column), append(p.child, int32(child)), append(p.weight, weight)
}

func largest(values []float32) (most float32) {
	for _, v := range values {
		most = max(most, v, -v)
	}
	return most
}

// sideBySide is how many children of a parent are trained at a time.
func sideBySide(l *local) int {
	n := lanes.Most
	for n > fewLanes && (len(l.rows) >= spread || n*l.cols > mostWeights) {
		n /= 2
	}
	return n
}
