package drift

import (
	"slices"
	"strings"

	"giantstream/featurize/labeltree"
	"giantstream/train/numeric"
)

const (
	// sampledLabels is how many labels are compared with the clusters, before the cut and after.
	sampledLabels = 1024
	// mostInstances is how many instances of a label count.
	mostInstances = 8
	// mostCentres bounds the clusters that labels are compared with: those of the finest level that has no more.
	mostCentres = 1024
	// centreInstances is how many instances make the centres, about.
	centreInstances = 16384
)

// labels is a sample of labels with a sample of their instances.
type labels struct {
	sample *lowest[*label]
	of     map[string][]uint64 // labels by their instances
}

type label struct {
	id        string
	known     bool // it was a node at the cut
	instances *lowest[instance]
	// fits are the cosines to the nearest centre by the first k+1 instances, valid as long as not changed.
	fits []float64
}

type instance struct {
	id     string
	vector []float32 // the projected text, weighted
}

func newLabels() *labels { return &labels{newLowest[*label](sampledLabels), map[string][]uint64{}} }

// add counts an instance of a label.
func (l *labels) add(hash uint64, id string, known bool, by string, vector []float32) {
	of := l.sample.values[hash]
	if of == nil {
		if !l.sample.admits(hash) {
			return
		}
		of = &label{id: strings.Clone(id), known: known, instances: newLowest[instance](mostInstances)}
		if gone, left := l.sample.put(hash, of); left {
			l.drop(hashOf(hashLabel, numeric.HashString(gone.id)), gone)
		}
	}
	at := hashOf(hashInstance, hash, numeric.HashString(by))
	if !of.instances.admits(at) {
		return
	}
	of.fits = nil
	if _, has := of.instances.values[at]; !has {
		l.of[by] = append(l.of[by], hash)
	}
	if gone, left := of.instances.put(at, instance{strings.Clone(by), slices.Clone(vector)}); left {
		l.forget(gone.id, hash)
	}
}

// drop forgets the instances of a label that has left the sample.
func (l *labels) drop(hash uint64, gone *label) {
	for _, i := range gone.instances.ascending {
		l.forget(i.id, hash)
	}
}

// forget says that an instance counts no more for a label.
func (l *labels) forget(by string, hash uint64) {
	rest := slices.DeleteFunc(l.of[by], func(h uint64) bool { return h == hash })
	if l.of[by] = rest; len(rest) == 0 {
		delete(l.of, by)
	}
}

// restate takes an instance from the labels that its row has no more; now ascend.
func (l *labels) restate(by string, now []string) {
	for _, hash := range slices.Clone(l.of[by]) {
		of := l.sample.values[hash]
		if _, still := slices.BinarySearch(now, of.id); still {
			continue
		}
		of.instances.remove(hashOf(hashInstance, hash, numeric.HashString(by)))
		of.fits = nil
		l.forget(by, hash)
	}
}

// centres are the clusters of a level of the tree.
type centres struct {
	level int
	dim   int
	sums  []float32 // a row each, normalized by finish
}

func newCentres(t *labeltree.Tree, dim int) *centres {
	level := 0
	for next := range t.Levels() {
		if t.Clusters(next) <= mostCentres {
			level = next
		}
	}
	return &centres{level, dim, make([]float32, t.Clusters(level)*dim)}
}

func (c *centres) row(k int32) []float32 { return c.sums[int(k)*c.dim : (int(k)+1)*c.dim] }

func (c *centres) finish() {
	for k := range len(c.sums) / c.dim {
		numeric.Normalize(c.row(int32(k)))
	}
}

// fit returns the cosines of a label to the nearest centre, by its first instance, its first two, and so on.
func (c *centres) fit(l *label) []float64 {
	if l.fits != nil {
		return l.fits
	}
	sum, unit := make([]float32, c.dim), make([]float32, c.dim)
	for _, i := range l.instances.ascending {
		numeric.Axpy(1, i.vector, sum)
		copy(unit, sum)
		best := float32(-1)
		if numeric.Normalize(unit) > 0 {
			for k := range len(c.sums) / c.dim {
				best = max(best, numeric.Dot(unit, c.row(int32(k))))
			}
		} else {
			best = 0
		}
		l.fits = append(l.fits, float64(best))
	}
	return l.fits
}

// profile is the mean fit of labels, by their number of instances.
func (c *centres) profile(l *labels) (mean [mostInstances]float64) {
	var n [mostInstances]float64
	for _, of := range l.sample.ascending {
		for k, fit := range c.fit(of) {
			mean[k] += fit
			n[k]++
		}
	}
	for k := range mean {
		if n[k] > 0 {
			mean[k] /= n[k]
		} else if k > 0 {
			mean[k] = mean[k-1]
		}
	}
	return mean
}
