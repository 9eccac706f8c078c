package labeltree

import (
	"math/rand/v2"
	"slices"

	"giantstream/internal/parallel"
)

// Rounds of cutting. The first few clusters are large and cut by all workers
// together. Below, one worker takes a cluster groupDepth rounds down, on
// compacted features: at rounds topDepth, topDepth+groupDepth, ….
const (
	topDepth   = 3
	groupDepth = 3
)

// division cuts clusters in two until they are leaves.
type division struct {
	x       Features
	fanOuts []int // children of a cluster per level, the root's first
	opt     Options
}

func fanOuts(levels []int) (out []int) {
	last := 1
	for _, k := range levels {
		out = append(out, k/last)
		last = k
	}
	return out
}

// part is a run of parts siblings of a level that are still one: members
// lo ≤ k < hi. A part of one sibling is that cluster.
type part struct {
	lo, hi int
	level  int
	parts  int
	// path from the root names the part: 1, 2-3, 4-7, …. A fan-out of b takes
	// ⌈log₂ b⌉ < 2·log₂ b cuts, so 2³¹ leaves fit into 62 bits.
	path uint64
}

// cut returns both halves of a part: ⌊parts/2⌋ siblings with as many of the
// members, rounded down, and the rest. So siblings get ⌊m/b⌋ or ⌈m/b⌉ of
// the m members of their parent, and all clusters of a level, as their parents do,
// differ by at most 1. ok is false for a leaf.
func (d *division) cut(p part) (left, right part, ok bool) {
	for p.parts == 1 {
		if p.level++; p.level >= len(d.fanOuts) {
			return part{}, part{}, false
		}
		p.parts = d.fanOuts[p.level]
	}
	left, right = p, p
	left.parts = p.parts / 2
	right.parts = p.parts - left.parts
	left.hi = p.lo + (p.hi-p.lo)*left.parts/p.parts
	right.lo = left.hi
	left.path, right.path = 2*p.path, 2*p.path+1
	return left, right, true
}

// random returns the random numbers of a part.
func (d *division) random(p part) *rand.Rand {
	return rand.New(rand.NewPCG(d.opt.Seed, p.path))
}

// root is the part of all members.
func root(members int) part { return part{hi: members, level: -1, parts: 1, path: 1} }

// run reorders the members of a part into the leaves that it returns.
func (d *division) run(top part, members []int32) []part {
	workers := parallel.Workers(d.opt.Workers)
	all := []part{top}
	s := newSplitter(d.x)
	s.sample = d.opt.sample()
	for range topDepth {
		all, _ = d.round(all, func(p part, n int) { s.split(members[p.lo:p.hi], n, d.random(p), workers) })
	}
	groups := make([]group, workers)
	for more := true; more; {
		below := make([][]part, len(all))
		deeper := make([]bool, len(all))
		parallel.ForEach(len(all), 1, workers, func(worker, k, _, _ int) {
			below[k], deeper[k] = groups[worker].divide(d, members, all[k])
		})
		all, more = slices.Concat(below...), slices.Contains(deeper, true)
	}
	return all
}

// round cuts every part that is no leaf, once; split has to bring the n members of the
// left half to the front. cuts reports whether there was one.
func (d *division) round(parts []part, split func(p part, n int)) (next []part, cuts bool) {
	for _, p := range parts {
		left, right, ok := d.cut(p)
		if !ok {
			next = append(next, p)
			continue
		}
		cuts = true
		split(p, left.hi-left.lo)
		next = append(next, left, right)
	}
	return next, cuts
}

// group is the scratch memory of a worker below the top.
type group struct {
	points   points
	splitter splitter
	local    []int32
	old      []int32
}

// divide takes a part groupDepth rounds down. deeper is false when only leaves are left.
func (g *group) divide(d *division, members []int32, top part) (below []part, deeper bool) {
	if _, _, ok := d.cut(top); !ok {
		return []part{top}, false
	}
	members = members[top.lo:top.hi]
	local := members
	p, compacted := d.x.compact(members, g.points)
	if compacted {
		g.points = p
		g.old = append(g.old[:0], members...)
		g.local = resize(g.local, len(members))
		for k := range g.local {
			g.local[k] = int32(k)
		}
		local = g.local
	} else {
		p = d.x
	}
	g.splitter.use(p)
	g.splitter.sample = d.opt.sample()
	below, deeper = []part{top}, true
	for range groupDepth {
		below, deeper = d.round(below, func(p part, n int) {
			g.splitter.split(local[p.lo-top.lo:p.hi-top.lo], n, d.random(p), 1)
		})
	}
	if compacted {
		for k, i := range local {
			members[k] = g.old[i]
		}
	}
	return below, deeper
}
