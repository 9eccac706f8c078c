package live

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"giantstream/featurize/internal/portable"
	"giantstream/featurize/labeltree"
)

// Constants of routing. Each was varied around beam 4, slack 0.02, margin 0.02,
// turn 0.05 while a fifth of debian-packages arrived; as set they give 0.866
// (BenchmarkArrivals: mean cosine; a new tree with 2,048 leaves has 0.862):
//
//	beam    1: 0.853, 2: 0.857, 4: 0.861, 8: 0.863, all clusters: 0.867 at 20 times the time
//	slack   0: 0.862 with 1,686 leaves, 0.02: 0.861 with 1,601, 0.05: 0.857, 0.1: 0.852
//	margin  0: 0.863 with 40 % more moves, 0.02: 0.861, 0.05: 0.858
//	turn    0.02: 0.864, 0.05: 0.861, 0.1: 0.857, 0.2: 0.853
const (
	// beam is how many clusters per level the way down follows.
	beam = 8
	// slack: a leaf with room takes a new label instead of a full one if its
	// cosine is less by no more.
	slack = 0.02
	// margin by which another leaf must be nearer for a label to move.
	margin = 0.02
	// turn is 1 − the cosine to its features when placed from which a label is
	// placed again.
	turn = 0.02
)

type scratch struct {
	unit        []float32
	front, next []candidate
}

// candidate is a cluster and the cosine to its centroid.
type candidate struct {
	cluster int32
	cosine  float32
}

// nearer orders candidates: by cosine, ties by number.
func (c candidate) nearer(than candidate) bool {
	return c.cosine > than.cosine || c.cosine == than.cosine && c.cluster < than.cluster
}

// Place enters a label with the given features (of any length) into the tree,
// or follows a change of its features. Features without a direction remove it.
func (t *Tree) Place(label int32, features []float32) error {
	if label < 0 || len(features) != t.placed.dim {
		return fmt.Errorf("live: label %d with %d features, want %d", label, len(features), t.placed.dim)
	}
	if !unit(features, t.scratch.unit) {
		t.Remove(label)
		return nil
	}
	t.grow(int(label) + 1)
	if t.leafOf[label] < 0 {
		copy(t.placed.row(label), t.scratch.unit)
		t.insert(label)
		return nil
	}
	if before := t.placed.row(label); portable.Dot(before, t.scratch.unit) < 1-turn {
		t.above(t.leafOf[label], func(c *centroid) { c.turn(before, t.scratch.unit) })
		copy(before, t.scratch.unit)
		t.moveNearer(label)
	}
	return nil
}

// Remove takes a label out of the tree, if it is there.
func (t *Tree) Remove(label int32) {
	if label < 0 || int(label) >= len(t.leafOf) || t.leafOf[label] < 0 {
		return
	}
	t.tell(Removed, label, t.take(label), -1)
}

// insert enters a label that is in no leaf, with its placed features.
func (t *Tree) insert(label int32) {
	found := t.route(t.placed.row(label))
	if len(found) == 0 { // every label has left
		to := t.newLeaf(0)
		t.tell(Split, -1, -1, to)
		found = []candidate{{cluster: to}}
	}
	best, room := found[0], candidate{cluster: -1}
	for _, c := range found {
		if c.nearer(best) {
			best = c
		}
		if t.hasRoom(c.cluster) && (room.cluster < 0 || c.nearer(room)) {
			room = c
		}
	}
	to := best.cluster
	if room.cluster >= 0 && room.cosine >= best.cosine-slack {
		to = room.cluster
	}
	t.put(label, to)
	t.tell(Added, label, -1, to)
	t.halve(to)
}

// moveNearer moves a label that is nearer to another leaf with room.
func (t *Tree) moveNearer(label int32) {
	u, own := t.placed.row(label), t.leafOf[label]
	best := candidate{own, t.leaves[own].cosineWithout(u) + margin}
	for _, c := range t.route(u) {
		if c.cluster != own && c.cosine > best.cosine && t.hasRoom(c.cluster) {
			best = c
		}
	}
	if best.cluster != own {
		t.move(label, best.cluster)
	}
}

func (t *Tree) hasRoom(leaf int32) bool { return len(t.leaves[leaf].members) < t.bound }

func (t *Tree) move(label, to int32) {
	from := t.take(label)
	t.put(label, to)
	t.tell(Moved, label, from, to)
}

// route returns the leaves at the end of the beam, in no order. It is valid
// until the next call.
func (t *Tree) route(u []float32) []candidate {
	front, next := t.scratch.front[:0], t.scratch.next[:0]
	if len(t.inner) == 0 {
		front = append(front, candidate{cluster: 0})
	} else {
		for c := range int32(len(t.inner[0])) {
			front = follow(front, c, &t.inner[0][c], u)
		}
	}
	for level := range len(t.inner) - 1 {
		next = next[:0]
		for _, f := range front {
			lo, hi := t.base.Children(level, f.cluster)
			for c := lo; c < hi; c++ {
				next = follow(next, c, &t.inner[level+1][c], u)
			}
		}
		front, next = next, front
	}
	next = next[:0]
	for _, f := range front {
		for _, k := range t.children[f.cluster] {
			if c := &t.leaves[k].centroid; c.n > 0 {
				next = append(next, candidate{k, c.cosine(u)})
			}
		}
	}
	t.scratch.front, t.scratch.next = front, next
	return next
}

// follow enters a cluster, unless it is empty, into the beam: the nearest so
// far, nearest first.
func follow(front []candidate, cluster int32, c *centroid, u []float32) []candidate {
	if c.n == 0 {
		return front
	}
	this := candidate{cluster, c.cosine(u)}
	if len(front) < beam {
		front = append(front, this)
	} else if !this.nearer(front[beam-1]) {
		return front
	}
	at := len(front) - 1
	for ; at > 0 && this.nearer(front[at-1]); at-- {
		front[at] = front[at-1]
	}
	front[at] = this
	return front
}

// newLeaf adds an empty leaf under a parent.
func (t *Tree) newLeaf(parent int32) int32 {
	k := int32(len(t.leaves))
	t.leaves = append(t.leaves, leaf{parent: parent})
	t.children[parent] = append(t.children[parent], k) // the largest number: ascending
	return k
}

// halve splits a leaf until it and the new ones hold no more than the bound.
func (t *Tree) halve(k int32) {
	for len(t.leaves[k].members) > t.bound {
		members := slices.Clone(t.leaves[k].members)
		dim := t.placed.dim
		values := make([]float32, 0, len(members)*dim)
		for _, l := range members {
			values = append(values, t.placed.row(l)...)
		}
		x, err := labeltree.Dense(values, dim)
		if err != nil { // rows of dim by construction
			return
		}
		to := t.newLeaf(t.leaves[k].parent)
		t.tell(Split, -1, k, to)
		stay, leave := labeltree.Halve(x, rand.New(rand.NewPCG(t.seed, uint64(to))))
		if t.nearer(leave, stay, values, &t.leaves[k].centroid) {
			leave = stay
		}
		for _, i := range leave {
			t.move(members[i], to)
		}
		t.halve(to)
		t.reassign(k, to)
	}
}

// nearer reports whether rows a lie nearer to the centroid than rows b.
func (t *Tree) nearer(a, b []int32, values []float32, c *centroid) bool {
	dim := t.placed.dim
	sum := func(rows []int32) float32 {
		var s centroid
		for _, i := range rows {
			s.add(values[int(i)*dim : (int(i)+1)*dim])
		}
		return s.cosine(c.sum)
	}
	return sum(a) > sum(b)
}

// reassign lets labels near a split move to a leaf that is nearer now: the
// members of both halves to any leaf, those of sibling leaves to one of the halves.
func (t *Tree) reassign(a, b int32) {
	for _, k := range []int32{a, b} {
		for _, l := range slices.Clone(t.leaves[k].members) {
			t.moveNearer(l)
		}
	}
	for _, s := range slices.Clone(t.children[t.leaves[a].parent]) {
		if s == a || s == b {
			continue
		}
		for _, l := range slices.Clone(t.leaves[s].members) {
			u := t.placed.row(l)
			stay := t.leaves[s].cosineWithout(u) + margin
			to := int32(-1)
			for _, k := range []int32{a, b} {
				if h := &t.leaves[k]; h.n > 0 && t.hasRoom(k) {
					if c := h.cosine(u); c > stay {
						to, stay = k, c
					}
				}
			}
			if to >= 0 {
				t.move(l, to)
			}
		}
	}
}
