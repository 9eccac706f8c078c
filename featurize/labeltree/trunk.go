package labeltree

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"giantstream/featurize/internal/portable"
	"giantstream/internal/parallel"
)

// Rows are label features outside of memory: Len × Dim, rows of length 1 or zero. Read writes rows lo ≤ i < hi to
// out. It is called from several goroutines, mostly for ascending runs, and for single rows of samples.
type Rows struct {
	Len, Dim int
	Read     func(lo, hi int, out []float32) error
}

// Trunk is the upper part of a tree: the first cuts of Build, and which labels each branch is to divide. It takes 8
// bytes a label while it grows and 4 after.
type Trunk struct {
	// Levels are the numbers of clusters per level, coarse to fine.
	Levels   []int
	Branches []Branch
	of       []int32 // branch of each label, -1 for those in none
}

// Branch is a part of the tree that is divided on its own, by Leaves.
type Branch struct {
	// Leaf is the number of its first leaf.
	Leaf int `json:"leaf"`
	// Members is how many labels it has.
	Members int `json:"members"`
	// Level, Siblings and Path are where the cuts go on.
	Level    int    `json:"level"`
	Siblings int    `json:"siblings"`
	Path     uint64 `json:"path"`
}

// readBlock is how many rows a pass reads at a time.
const readBlock = 512

// Grow makes the first cuts of the tree that Build makes of the same features, options and seed. It stops before a
// round of cuts would make more branches than the given number, or would cut a part of at most Options.Sample labels;
// Leaves makes the remaining cuts. Each round reads all rows once, and samples row by row. Without labels that have
// features, the error is ErrNoLabels.
func Grow(x Rows, opt Options, branches int) (*Trunk, error) {
	g := &growth{Rows: x, opt: opt, t: &Trunk{of: make([]int32, x.Len)}}
	members, err := g.members()
	if err != nil {
		return nil, err
	}
	if members == 0 {
		return nil, ErrNoLabels
	}
	if g.t.Levels, err = opt.levels(members); err != nil {
		return nil, err
	}
	g.division = division{fanOuts: fanOuts(g.t.Levels), opt: opt}
	parts := []part{root(members)}
	for 2*len(parts) <= branches && g.canCut(parts) {
		if parts, err = g.round(parts); err != nil {
			return nil, err
		}
	}
	leaf := 0
	for _, p := range parts {
		g.t.Branches = append(g.t.Branches, Branch{leaf, p.hi - p.lo, p.level, p.parts, p.path})
		n := p.parts
		for _, f := range g.division.fanOuts[p.level+1:] {
			n *= f
		}
		leaf += n
	}
	return g.t, nil
}

// BranchOf returns the branch of a label, or -1 for a label without features.
func (t *Trunk) BranchOf(label int) int { return int(t.of[label]) }

// Leaves divides a branch of a tree of these levels. features are those of the branch's labels in ascending order,
// Members × dim. It returns the leaf of each.
func (b Branch) Leaves(levels []int, features []float32, dim int, opt Options) ([]int32, error) {
	x, err := Dense(features, dim)
	if err != nil {
		return nil, err
	}
	if x.Len() != b.Members {
		return nil, fmt.Errorf("labeltree: %d rows for the %d labels of a branch", x.Len(), b.Members)
	}
	members := make([]int32, b.Members)
	for i := range members {
		members[i] = int32(i)
	}
	d := &division{x, fanOuts(levels), opt}
	out := make([]int32, b.Members)
	top := part{hi: b.Members, level: b.Level, parts: b.Siblings, path: b.Path}
	for k, leaf := range d.run(top, members) {
		for _, m := range members[leaf.lo:leaf.hi] {
			out[m] = int32(b.Leaf + k)
		}
	}
	return out, nil
}

// FromLeaves returns the tree of these levels in which label i is in leaf leafOf[i], -1 for none.
func FromLeaves(levels []int, leafOf []int32) (*Tree, error) {
	if len(levels) == 0 {
		return nil, ErrNoLabels
	}
	for i, leaf := range leafOf {
		if leaf < -1 || int(leaf) >= levels[len(levels)-1] {
			return nil, fmt.Errorf("labeltree: label %d is in leaf %d of %d", i, leaf, levels[len(levels)-1])
		}
	}
	return newTree(levels, leafOf), nil
}

// growth is a Trunk that grows.
type growth struct {
	Rows
	opt      Options
	division division
	t        *Trunk
	score    []float32
}

// forEachRow calls do for all rows. Several goroutines read a block at a time.
func (g *growth) forEachRow(do func(i int, row []float32)) error {
	workers := parallel.Workers(g.opt.Workers)
	buffers := make([][]float32, workers)
	var failed atomic.Pointer[error]
	parallel.ForEach(g.Len, readBlock, workers, func(worker, _, lo, hi int) {
		if failed.Load() != nil {
			return
		}
		if buffers[worker] == nil {
			buffers[worker] = make([]float32, readBlock*g.Dim)
		}
		rows := buffers[worker][:(hi-lo)*g.Dim]
		if err := g.Read(lo, hi, rows); err != nil {
			failed.CompareAndSwap(nil, &err)
			return
		}
		for i := lo; i < hi; i++ {
			do(i, rows[(i-lo)*g.Dim:(i-lo+1)*g.Dim])
		}
	})
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// members puts the labels with features into the only branch there is.
func (g *growth) members() (n int, err error) {
	var notFinite atomic.Int64
	notFinite.Store(-1)
	err = g.forEachRow(func(i int, row []float32) {
		switch {
		case !allFinite(row):
			notFinite.Store(int64(i))
		case allZero(row):
			g.t.of[i] = -1
		}
	})
	if i := notFinite.Load(); err == nil && i >= 0 {
		err = fmt.Errorf("labeltree: the features of label %d are not finite", i)
	}
	for _, b := range g.t.of {
		n += int(b) + 1
	}
	return n, err
}

func (g *growth) canCut(parts []part) bool {
	sample := g.opt.sample()
	return sample > 0 && !slices.ContainsFunc(parts, func(p part) bool {
		_, _, ok := g.division.cut(p)
		return !ok || p.hi-p.lo <= sample
	})
}

// round cuts every part, as splitter.splitBySample does.
func (g *growth) round(parts []part) (next []part, err error) {
	random := make([]*rand.Rand, len(parts))
	for k, p := range parts {
		random[k] = g.division.random(p)
	}
	samples := g.samples(parts, random)
	left := make([]int, len(parts))
	directions := make([][]float32, len(parts))
	for k, p := range parts {
		l, r, _ := g.division.cut(p)
		next = append(next, l, r)
		left[k] = l.hi - l.lo
		if directions[k], err = g.direction(samples[k], left[k], p.hi-p.lo, random[k]); err != nil {
			return nil, err
		}
	}
	if g.score == nil {
		g.score = make([]float32, g.Len)
	}
	if err := g.forEachRow(func(i int, row []float32) {
		if k := g.t.of[i]; k >= 0 {
			g.score[i] = portable.Dot(row, directions[k])
		}
	}); err != nil {
		return nil, err
	}
	for lo := 0; lo < len(parts); lo += selected {
		g.cut(lo, left[lo:min(lo+selected, len(parts))])
	}
	for i, b := range g.t.of {
		if b < -1 {
			g.t.of[i] = -2 - b
		}
	}
	return next, nil
}

// samples draws the sample of every part, in one pass over the labels.
func (g *growth) samples(parts []part, random []*rand.Rand) [][]int32 {
	chosen := make([][]int32, len(parts))
	seen := make([]int, len(parts))
	n := g.opt.sample()
	for i, k := range g.t.of {
		if k < 0 {
			continue
		}
		if p := parts[k]; random[k].IntN(p.hi-p.lo-seen[k]) < n-len(chosen[k]) {
			chosen[k] = append(chosen[k], int32(i))
		}
		seen[k]++
	}
	return chosen
}

// direction returns the direction in which a part of the given number of members is cut; left of them go to the left.
func (g *growth) direction(chosen []int32, left, members int, r *rand.Rand) ([]float32, error) {
	values := make([]float32, len(chosen)*g.Dim)
	local := make([]int32, len(chosen))
	for k, i := range chosen {
		local[k] = int32(k)
		if err := g.Read(int(i), int(i)+1, values[k*g.Dim:(k+1)*g.Dim]); err != nil {
			return nil, err
		}
	}
	s := newSplitter(dense{values, g.Dim})
	s.direct(local, max(1, left*len(chosen)/members), r, parallel.Workers(g.opt.Workers))
	return s.total, nil
}

// selected is how many parts are cut in one pass: their histograms take 16 MiB.
const selected = 64

// cut sends the left[k] members of part from+k with the lowest scores, ties by number, to branch 2(from+k) and the
// others to the next branch. It finds the last score on the left by its upper and then its lower 16 bits, so that no
// second copy of the scores is sorted. A new number b is noted as -2-b, so that it is not taken for a part that is
// still to be cut.
func (g *growth) cut(from int, left []int) {
	count := make([][1 << 16]uint32, len(left))
	last := make([]uint32, len(left)) // the score of the last member on the left
	ties := make([]int, len(left))    // how many members of that score are on the left
	part := func(b int32) int {       // -1 for one of another call
		if int(b) < from || int(b) >= from+len(left) {
			return -1
		}
		return int(b) - from
	}
	copy(ties, left)
	for _, shift := range []uint{16, 0} {
		clear(count)
		for i, b := range g.t.of {
			if k := part(b); k >= 0 {
				if v := ordered(g.score[i]); shift == 16 || v>>16 == last[k]>>16 {
					count[k][v>>shift&0xffff]++
				}
			}
		}
		for k := range left {
			bin := 0
			for int(count[k][bin]) < ties[k] {
				ties[k] -= int(count[k][bin])
				bin++
			}
			last[k] |= uint32(bin) << shift
		}
	}
	for i, b := range g.t.of {
		k := part(b)
		if k < 0 {
			continue
		}
		v := ordered(g.score[i])
		side := int32(1)
		if v < last[k] || v == last[k] && ties[k] > 0 {
			if v == last[k] {
				ties[k]--
			}
			side = 0
		}
		g.t.of[i] = -2 - (2*b + side)
	}
}
