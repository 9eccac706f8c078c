package xrt

import (
	"maps"
	"math"
	"slices"
	"testing"

	"giantstream/internal/graphdir"
	"giantstream/train/internal/graphtest"
	"giantstream/train/numeric"
	"giantstream/train/objectives/trainer"
)

func randomUnit(r *numeric.Rand, n, dim int) []float32 {
	z := make([]float32, n*dim)
	for k := range n {
		for i := range dim {
			z[k*dim+i] = float32(r.Float64() - 0.5)
		}
		numeric.Normalize(z[k*dim : (k+1)*dim])
	}
	return z
}

// The gradient with respect to each number of both ends' directions is that of the loss.
func TestLinksGradient(t *testing.T) {
	const dim = 5
	g := graphdir.Undirected(8, [][2]int32{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {0, 5}})
	l := newLinks(Options{Links: 0.8, Temperature: 0.3}, Set{Neighbours: g})
	part := []int32{0, 1, 2, 3}
	partners := l.draw(Options{Seed: 1}, trainer.Place{}, part, Set{Neighbours: g, Keys: graphtest.Keys(g.Rows)})
	if len(partners) != len(part) {
		t.Fatalf("%d partners of %d instances", len(partners), len(part))
	}
	r := numeric.NewRand(7)
	z := randomUnit(&r, 2*len(part), dim)
	loss := func(z []float32) (sum float64) {
		l.run(dim, len(part), g, 1, z, make([]float32, len(z)))
		for _, x := range l.loss {
			sum += x
		}
		return sum
	}
	dz := make([]float32, len(z))
	l.run(dim, len(part), g, 1, z, dz)
	for i := range z {
		const h = 1e-2
		up, down := slices.Clone(z), slices.Clone(z)
		up[i] += h
		down[i] -= h
		want := (loss(up) - loss(down)) / (2 * h)
		if math.Abs(want-float64(dz[i])) > 2e-3 {
			t.Errorf("number %d: gradient %.5f, the loss says %.5f", i, dz[i], want)
		}
	}
}

// An instance is pushed away from the partners of others, except itself and its neighbours.
func TestNeighboursAreNotPushedApart(t *testing.T) {
	g := graphdir.Undirected(6, [][2]int32{{0, 1}, {2, 3}, {0, 3}, {4, 0}, {5, 1}})
	l := newLinks(Options{Links: 1, Temperature: 0.5}, Set{Neighbours: g})
	l.slot, l.instances, l.partners = []int32{0, 1, 2, 3}, []int32{0, 2, 4, 5}, []int32{1, 3, 0, 1}
	r := numeric.NewRand(3)
	z := randomUnit(&r, 8, 4)
	l.run(4, 4, g, 1, z, make([]float32, len(z)))
	for a, instance := range l.instances {
		for b, partner := range l.partners {
			_, linked := slices.BinarySearch(g.Row(int(instance)).Index, partner)
			push := l.similarity[a*4+b] > 0
			if want := a != b && !linked && instance != partner; push != want {
				t.Errorf("instance %d is pushed away from %d: %t, want %t", instance, partner, push, want)
			}
		}
	}
}

// Partners are neighbours, never instances that are held out, and change from epoch to epoch.
func TestPartnersAreNeighboursThatAreNotHeldOut(t *testing.T) {
	g := graphtest.Topics(200, 2, 10, 1).Neighbours
	held := []int32{3, 50, 77, 120}
	l := newLinks(Options{Links: 1, Temperature: 0.1}, Set{Neighbours: g, HeldOut: held})
	var part []int32
	for i := range int32(200) {
		if !slices.Contains(held, i) && len(g.Row(int(i)).Index) > 0 {
			part = append(part, i)
		}
	}
	var first []int32
	for epoch := range 20 {
		partners := l.draw(Options{Seed: 1}, trainer.Place{Epoch: epoch}, part,
			Set{Neighbours: g, Keys: graphtest.Keys(g.Rows)})
		for k, j := range partners {
			if _, linked := slices.BinarySearch(g.Row(int(l.instances[k])).Index, j); !linked {
				t.Fatalf("%d is a partner of %d and no neighbour", j, l.instances[k])
			}
			if slices.Contains(held, j) {
				t.Fatalf("%d is held out and a partner", j)
			}
		}
		if epoch == 0 {
			first = slices.Clone(partners)
		} else if slices.Equal(first, partners) {
			t.Errorf("epoch %d has the partners of epoch 0", epoch)
		}
	}
	// An instance all of whose neighbours are held out has no partner.
	lonely := graphdir.Undirected(3, [][2]int32{{0, 1}})
	l = newLinks(Options{Links: 1, Temperature: 0.1}, Set{Neighbours: lonely, HeldOut: []int32{1}})
	if p := l.draw(Options{}, trainer.Place{}, []int32{0}, Set{Neighbours: lonely, Keys: graphtest.Keys(3)}); len(p) != 0 {
		t.Errorf("partners %v of an instance whose only neighbour is held out", p)
	}
	l.run(4, 1, lonely, 1, make([]float32, 4), make([]float32, 4))
}

// The same partner is drawn for a node whose neighbours stay, by whatever numbers; another link changes the choice of
// as many as it has a share of the neighbours.
func TestPartnersStayWhereNodesAreRenumbered(t *testing.T) {
	const n, degree = 300, 8
	edges := func(shift int32) (out [][2]int32) {
		for i := range int32(n) {
			for k := range int32(degree / 2) {
				out = append(out, [2]int32{shift + i, shift + (i+1+7*k)%n})
			}
		}
		return out
	}
	draw := func(shift int32, more ...[2]int32) map[uint64]uint64 {
		g := graphdir.Undirected(n+int(shift), append(edges(shift), more...))
		set := Set{Neighbours: g, Keys: make([]uint64, g.Rows)}
		var part []int32
		for i := range g.Rows {
			set.Keys[i] = uint64(i-int(shift)) * 977
			if len(g.Row(i).Index) > 0 {
				part = append(part, int32(i))
			}
		}
		partners := map[uint64]uint64{}
		l := newLinks(Options{Links: 1, Temperature: 0.1}, set)
		for k, j := range l.draw(Options{Seed: 1}, trainer.Place{Epoch: 2}, part, set) {
			partners[set.Keys[l.instances[k]]] = set.Keys[j]
		}
		return partners
	}
	before := draw(0)
	if after := draw(5); !maps.Equal(before, after) {
		t.Error("other numbers, other partners")
	}
	var more [][2]int32
	for i := range int32(n / 2) {
		more = append(more, [2]int32{i, i + n/2})
	}
	changed := 0
	for i, j := range draw(0, more...) {
		if before[i] != j {
			changed++
		}
	}
	if changed == 0 || changed > 2*n/degree {
		t.Errorf("of %d nodes with %d links, one more changes the partner of %d", n, degree, changed)
	}
}

// A neighbour is drawn as often as its link weighs, whatever the scale. Equal weights draw what none draw.
func TestPartnersAreDrawnByWeight(t *testing.T) {
	g := graphdir.Undirected(4, [][2]int32{{0, 1}, {0, 2}, {0, 3}})
	drawn := func(weights ...float32) (partners []int32) {
		g := *g
		if len(weights) > 0 {
			g.Value = slices.Concat(weights, []float32{1, 1, 1})
		}
		set := Set{Neighbours: &g, Keys: graphtest.Keys(g.Rows)}
		l := newLinks(Options{Links: 1, Temperature: 0.1}, set)
		for epoch := range 4000 {
			partners = append(partners, l.draw(Options{Seed: 1}, trainer.Place{Epoch: epoch}, []int32{0}, set)...)
		}
		return partners
	}
	if !slices.Equal(drawn(), drawn(1, 1, 1)) || !slices.Equal(drawn(), drawn(0.5, 0.5, 0.5)) {
		t.Error("equal weights draw other partners than none")
	}
	var counts [4]float64
	for _, j := range drawn(5, 3, 2) {
		counts[j] += 1. / 4000
	}
	for j, want := range []float64{0, 0.5, 0.3, 0.2} {
		if math.Abs(counts[j]-want) > 0.03 {
			t.Errorf("neighbour %d is drawn %.3f of the time, want %.1f", j, counts[j], want)
		}
	}
}

// Of 8,000 nodes, 80 are a hundredth: a node with four times as many neighbours is drawn half as often.
func TestChancesOfHubs(t *testing.T) {
	const n = 8000
	var edges [][2]int32
	for i := range int32(320) {
		edges = append(edges, [2]int32{0, 2 + i})
	}
	for i := range int32(80) {
		edges = append(edges, [2]int32{1, 400 + i})
	}
	for j, want := range []float32{0.5, 1, 1} {
		if got := chances(graphdir.Undirected(n, edges))[j]; got != want {
			t.Errorf("node %d is drawn %g of the time, want %g", j, got, want)
		}
	}
}

// A node that is every node's neighbour is drawn less often than a link's share; nodes of a few links are not.
func TestHubsAreSeldomPartners(t *testing.T) {
	const n, epochs = 400, 50
	var edges [][2]int32
	for i := range int32(n - 1) {
		edges = append(edges, [2]int32{i, (i + 1) % (n - 1)}, [2]int32{i, n - 1})
	}
	g := graphdir.Undirected(n, edges)
	set := Set{Neighbours: g, Keys: graphtest.Keys(g.Rows)}
	part := make([]int32, n-1)
	for i := range part {
		part[i] = int32(i)
	}
	l := newLinks(Options{Links: 1, Temperature: 0.1}, set)
	var hub float64
	for epoch := range epochs {
		for _, j := range l.draw(Options{Seed: 1}, trainer.Place{Epoch: epoch}, part, set) {
			if j == n-1 {
				hub++
			}
		}
	}
	chance := math.Sqrt(float64(hubLinks) / (n - 1))
	got, want := hub/(epochs*(n-1)), chance/(2+chance)
	if math.Abs(got-want) > 0.01 {
		t.Errorf("the hub is %.3f of the partners, want %.3f", got, want)
	}
	for j, c := range l.chance[:n-1] {
		if c != 1 {
			t.Fatalf("node %d of %d links is drawn %.2f of the time", j, len(g.Row(j).Index), c)
		}
	}
}
