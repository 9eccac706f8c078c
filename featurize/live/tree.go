package live

import (
	"fmt"
	"math"
	"slices"

	"giantstream/featurize/internal/portable"
	"giantstream/featurize/labeltree"
)

// Options are the settings of a Tree and a Graph.
type Options struct {
	// MaxLeafSize is the most labels a leaf may hold (0: 48, or the largest
	// leaf of the base tree if that holds more).
	MaxLeafSize int
	Seed        uint64
	// Observe, unless it is nil, gets every change of the tree, in order.
	Observe func(Event)
}

// Tree is a label tree that follows its labels. See the package documentation.
type Tree struct {
	base    *labeltree.Tree
	bound   int
	seed    uint64
	observe func(Event)

	version int64
	size    int     // labels in leaves
	leafOf  []int32 // label → leaf, -1 if in none
	placed  vectors // label → its unit features when it was last placed
	inner   [][]centroid
	leaves  []leaf
	// children of each cluster of the last inner level: leaves, ascending,
	// without those that have emptied. A tree of one level has one such cluster.
	children [][]int32

	scratch scratch
}

// leaf holds its members, ascending.
type leaf struct {
	centroid
	parent  int32
	members []int32
}

// centroid of a cluster: the sum of its members' placed features.
type centroid struct {
	n   int
	sum []float32
	// scale is 1/‖sum‖, 0 for an empty cluster.
	scale float32
}

func (c *centroid) add(u []float32) {
	if c.sum == nil {
		c.sum = make([]float32, len(u))
	}
	c.n++
	portable.Add(u, c.sum)
	c.rescale()
}

func (c *centroid) sub(u []float32) {
	if c.n--; c.n == 0 {
		c.sum, c.scale = nil, 0
		return
	}
	portable.Sub(u, c.sum)
	c.rescale()
}

// turn follows a member whose features changed.
func (c *centroid) turn(before, after []float32) {
	portable.Sub(before, c.sum)
	portable.Add(after, c.sum)
	c.rescale()
}

func (c *centroid) rescale() {
	c.scale = 0
	if square := portable.Dot(c.sum, c.sum); square > 0 {
		c.scale = float32(1 / math.Sqrt(float64(square)))
	}
}

// cosine of u to the centroid.
func (c *centroid) cosine(u []float32) float32 {
	if c.scale == 0 {
		return 0
	}
	return portable.Dot(u, c.sum) * c.scale
}

// cosineWithout is the cosine of member u to the sum of the other members, or
// -1 if there is none: ‖S−u‖² = ‖S‖² − 2⟨S,u⟩ + 1.
func (c *centroid) cosineWithout(u []float32) float32 {
	if c.n < 2 || c.scale == 0 {
		return -1
	}
	d := float64(portable.Dot(u, c.sum))
	scale := float64(c.scale)
	square := 1/(scale*scale) - float64(2*d) + 1
	if square <= 0 {
		return -1
	}
	return float32((d - 1) / math.Sqrt(square))
}

// NewTree returns the live tree that begins as base. features are the labels'
// features, n × dim row-major, of any length: those that base has in a leaf stay
// there, others with features are routed, and labels of base without any (zero rows,
// or none) are left out. Memory: about 4·dim bytes per label and cluster.
func NewTree(base *labeltree.Tree, features []float32, dim int, opt Options) (*Tree, error) {
	if dim < 1 || len(features)%dim != 0 {
		return nil, fmt.Errorf("live: %d values are no rows of %d dimensions", len(features), dim)
	}
	if opt.MaxLeafSize < 0 {
		return nil, fmt.Errorf("live: leaves of at most %d labels; want 1 or more, or 0 for the default",
			opt.MaxLeafSize)
	}
	t := newTree(base, dim, opt)
	n := len(features) / dim
	t.grow(n)
	var rest []int32
	last := base.Levels() - 1
	for l := range int32(max(n, base.Labels())) {
		leaf := base.Cluster(last, int(l))
		switch {
		case int(l) >= n || !unit(features[int(l)*dim:(int(l)+1)*dim], t.placed.row(l)):
			if leaf >= 0 {
				t.tell(Removed, l, leaf, -1)
			}
		case leaf < 0:
			rest = append(rest, l)
		default:
			t.put(l, leaf)
		}
	}
	for k := range int32(len(t.leaves)) { // new leaves hold no more than the bound
		t.halve(k)
	}
	for _, l := range rest {
		t.insert(l)
	}
	return t, nil
}

func newTree(base *labeltree.Tree, dim int, opt Options) *Tree {
	last := base.Levels() - 1
	t := &Tree{base: base, bound: opt.MaxLeafSize, seed: opt.Seed, observe: opt.Observe,
		placed: vectors{dim: dim}, leaves: make([]leaf, base.Clusters(last)), children: make([][]int32, 1)}
	for level := range last {
		t.inner = append(t.inner, make([]centroid, base.Clusters(level)))
		t.children = make([][]int32, base.Clusters(level))
	}
	largest := 0
	for k := range t.leaves {
		leaf := int32(k)
		if last > 0 {
			t.leaves[k].parent = base.Parent(last, leaf)
		}
		p := t.leaves[k].parent
		t.children[p] = append(t.children[p], leaf)
		largest = max(largest, len(base.Members(last, leaf)))
	}
	if t.bound == 0 {
		t.bound = max(defaultLeafSize, largest)
	}
	t.scratch.unit = make([]float32, dim)
	return t
}

// defaultLeafSize is the default of labeltree.Options.
const defaultLeafSize = 48

// grow makes room for labels below n.
func (t *Tree) grow(n int) {
	t.placed.grow(n)
	for len(t.leafOf) < n {
		t.leafOf = append(t.leafOf, -1)
	}
}

// Levels returns the number of levels.
func (t *Tree) Levels() int { return t.base.Levels() }

// Clusters returns the number of clusters of a level; for the leaves, those
// that have emptied included.
func (t *Tree) Clusters(level int) int {
	if level == t.Levels()-1 {
		return len(t.leaves)
	}
	return t.base.Clusters(level)
}

// Cluster returns the cluster of a level that holds the label, or -1.
func (t *Tree) Cluster(level, label int) int32 {
	if label < 0 || label >= len(t.leafOf) || t.leafOf[label] < 0 {
		return -1
	}
	c := t.leafOf[label]
	for at := t.Levels() - 1; at > level; at-- {
		c = t.Parent(at, c)
	}
	return c
}

// Parent returns the cluster of level-1 that holds the cluster of level ≥ 1.
func (t *Tree) Parent(level int, cluster int32) int32 {
	if level == t.Levels()-1 {
		return t.leaves[cluster].parent
	}
	return t.base.Parent(level, cluster)
}

// Children returns the clusters of level+1 that make up the cluster of level,
// ascending, without leaves that have emptied; level+1 must exist.
func (t *Tree) Children(level int, cluster int32) []int32 {
	if level == t.Levels()-2 {
		return slices.Clone(t.children[cluster])
	}
	var children []int32
	lo, hi := t.base.Children(level, cluster)
	for c := lo; c < hi; c++ {
		children = append(children, c)
	}
	return children
}

// Members returns the labels of a cluster, ascending.
func (t *Tree) Members(level int, cluster int32) []int32 {
	if level == t.Levels()-1 {
		return slices.Clone(t.leaves[cluster].members)
	}
	var members []int32
	for _, c := range t.Children(level, cluster) {
		members = append(members, t.Members(level+1, c)...)
	}
	slices.Sort(members)
	return members
}

// Labels returns the number of labels known, those in no cluster included.
func (t *Tree) Labels() int { return len(t.leafOf) }

// Size returns the number of labels that are in a leaf.
func (t *Tree) Size() int { return t.size }

// MaxLeafSize returns the balance bound.
func (t *Tree) MaxLeafSize() int { return t.bound }

// Version returns the number of changes since the base tree.
func (t *Tree) Version() int64 { return t.version }

// MeanCosine returns how tight the clusters of a level are: the mean over the
// labels in the tree of the cosine between the label's features, as they were
// when it was last placed, and the sum of its cluster.
func (t *Tree) MeanCosine(level int) float64 {
	var total float64
	count := func(c *centroid) {
		if c.scale > 0 { // Σ_i ⟨x_i, S⟩/‖S‖ = ‖S‖
			total += 1 / float64(c.scale)
		}
	}
	if level == t.Levels()-1 {
		for k := range t.leaves {
			count(&t.leaves[k].centroid)
		}
	} else {
		for k := range t.inner[level] {
			count(&t.inner[level][k])
		}
	}
	return total / float64(max(1, t.size))
}

// tell counts a change and reports it.
func (t *Tree) tell(kind EventKind, label, from, to int32) {
	t.version++
	if t.observe != nil {
		t.observe(Event{t.version, kind, label, from, to})
	}
}

// put enters a label, with its placed features, into a leaf.
func (t *Tree) put(label, to int32) {
	k := &t.leaves[to]
	at, _ := slices.BinarySearch(k.members, label)
	k.members = slices.Insert(k.members, at, label)
	t.leafOf[label] = to
	t.size++
	t.above(to, func(c *centroid) { c.add(t.placed.row(label)) })
}

// take takes a label out of its leaf, which it returns.
func (t *Tree) take(label int32) (from int32) {
	from = t.leafOf[label]
	k := &t.leaves[from]
	at, _ := slices.BinarySearch(k.members, label)
	k.members = slices.Delete(k.members, at, at+1)
	t.leafOf[label] = -1
	t.size--
	t.above(from, func(c *centroid) { c.sub(t.placed.row(label)) })
	if len(k.members) == 0 {
		k.members = nil
		siblings := &t.children[k.parent]
		at, _ := slices.BinarySearch(*siblings, from)
		*siblings = slices.Delete(*siblings, at, at+1)
	}
	return from
}

// above applies update to the centroids of a leaf and of all clusters that
// hold it.
func (t *Tree) above(leaf int32, update func(*centroid)) {
	update(&t.leaves[leaf].centroid)
	c := leaf
	for level := t.Levels() - 1; level > 0; level-- {
		c = t.Parent(level, c)
		update(&t.inner[level-1][c])
	}
}
