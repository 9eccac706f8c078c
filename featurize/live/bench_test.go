package live_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/live"
	"giantstream/featurize/pifa"
	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/featurize/tfidf"
	"giantstream/internal/graphdir/graphdirtest"
)

// debian is debian-packages: 63,666 nodes, their texts projected to 256
// dimensions as a generation's are.
type debian struct {
	projected []float32
	labels    *sparse.Matrix

	texts      []string
	vectorizer *tfidf.Model
	projection *projection.Projection
}

const debianDim = 256

func loadDebian(b *testing.B) debian {
	b.Helper()
	g := graphdirtest.Load(b, "debian-packages")
	f, err := tfidf.NewFitter(tfidf.DefaultOptions())
	if err != nil {
		b.Fatal(err)
	}
	f.AddAll(g.Texts, 0)
	m, err := f.Fit()
	if err != nil {
		b.Fatal(err)
	}
	x := m.TransformAll(g.Texts, 0)
	p, err := projection.Fit(x, debianDim, projection.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return debian{p.ApplyAll(x, 0), g.Neighbours, g.Texts, m, p}
}

func (d debian) text(i int32) []float32 {
	return d.projected[int(i)*debianDim : (int(i)+1)*debianDim]
}

// first returns the graph of the first n nodes.
func (d debian) first(n int) debian {
	y := &sparse.Matrix{Cols: n, Start: []int64{0}}
	for i := range n {
		row := d.labels.Row(i).Index
		end, _ := slices.BinarySearch(row, int32(n))
		y.Append(sparse.Vector{Index: row[:end]})
	}
	return debian{projected: d.projected[:n*debianDim], labels: y}
}

// shuffled returns the graph with its nodes numbered in random order.
func (d debian) shuffled() debian {
	order := rand.New(rand.NewPCG(1, 2)).Perm(d.labels.Rows)
	number := make([]int32, len(order))
	for at, i := range order {
		number[i] = int32(at)
	}
	out := debian{labels: &sparse.Matrix{Cols: len(order), Start: []int64{0}}}
	for _, i := range order {
		out.projected = append(out.projected, d.text(int32(i))...)
		var row sparse.Vector
		for _, l := range d.labels.Row(i).Index {
			row.Index = append(row.Index, number[l])
		}
		slices.Sort(row.Index)
		out.labels.Append(row)
	}
	return out
}

// fresh builds a tree as a generation would.
func (d debian) fresh(b *testing.B, opt labeltree.Options) (*labeltree.Tree, []float32) {
	b.Helper()
	s, err := pifa.FromGraph(d.projected, debianDim, d.labels, pifa.Sum, 0)
	if err != nil {
		b.Fatal(err)
	}
	features := s.Normalized()
	x, err := labeltree.Dense(features, debianDim)
	if err != nil {
		b.Fatal(err)
	}
	tree, err := labeltree.Build(x, opt)
	if err != nil {
		b.Fatal(err)
	}
	return tree, features
}

func (d debian) live(b *testing.B) *live.Graph {
	b.Helper()
	tree, _ := d.fresh(b, labeltree.Options{Seed: 1})
	g, err := live.NewGraph(tree, d.projected, debianDim, d.labels, pifa.Sum, live.Options{Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	return g
}

// meanCosine is that of the labels' features to the sum of their leaf, and
// the number of leaves that hold any.
func meanCosine(tree interface{ Cluster(level, label int) int32 }, last int, features []float32) (cosine,
	leaves float64) {
	sums := map[int32][]float64{}
	n := 0
	for l := range len(features) / debianDim {
		k := tree.Cluster(last, l)
		if k < 0 {
			continue
		}
		n++
		if sums[k] == nil {
			sums[k] = make([]float64, debianDim)
		}
		for j, v := range features[l*debianDim : (l+1)*debianDim] {
			sums[k][j] += float64(v)
		}
	}
	for _, s := range sums {
		var square float64
		for _, v := range s {
			square += v * v
		}
		cosine += math.Sqrt(square)
	}
	return cosine / float64(n), float64(len(sums))
}

// BenchmarkArrivals lets a fifth of the nodes of debian-packages arrive live,
// one by one with their text and their edges to what is there, and compares the
// tree with one built from the start, of the default size and of as many leaves.
func BenchmarkArrivals(b *testing.B) {
	all := loadDebian(b).shuffled()
	n := int32(all.labels.Rows)
	begin := n * 4 / 5
	for b.Loop() {
		g := all.first(int(begin)).live(b)
		leaves := g.Tree().Clusters(g.Tree().Levels() - 1)
		started := time.Now()
		for i := g.Grow(int(n - begin)); i < n; i++ {
			g.SetText(i, all.text(i))
			for _, l := range all.labels.Row(int(i)).Index {
				if l < i {
					g.AddEdge(i, l)
					g.AddEdge(l, i)
				}
			}
		}
		b.ReportMetric(float64(time.Since(started).Microseconds())/float64(n-begin), "µs/node")
		fresh, features := all.fresh(b, labeltree.Options{Seed: 1})
		b.ReportMetric(float64(leaves), "leaves-before")
		last := g.Tree().Levels() - 1
		got, after := meanCosine(g.Tree(), last, features)
		b.ReportMetric(got, "cosine-live")
		b.ReportMetric(after, "leaves-live")
		want, leavesFresh := meanCosine(fresh, fresh.Levels()-1, features)
		b.ReportMetric(want, "cosine-fresh")
		b.ReportMetric(leavesFresh, "leaves-fresh")
		b.ReportMetric(got/want, "ratio")
	}
}

// BenchmarkTextChanged gives a random node of debian-packages the text of
// another one, and makes its row's targets: from the raw text, and from the projected
// text on. Hubs are left out as instances, as max_degree does.
func BenchmarkTextChanged(b *testing.B) {
	d := loadDebian(b)
	b.Run("raw", func(b *testing.B) {
		var features sparse.Vector
		text := make([]float32, debianDim)
		changeTexts(b, d, func(n int32) []float32 {
			features = d.vectorizer.Transform(d.texts[n], features)
			d.projection.Apply(features, text)
			return text
		})
	})
	b.Run("projected", func(b *testing.B) { changeTexts(b, d, d.text) })
}

func changeTexts(b *testing.B, d debian, textOf func(int32) []float32) {
	b.Helper()
	g := d.live(b)
	r := rand.New(rand.NewPCG(1, 1))
	measure(b, func() func() {
		n, other := r.Int32N(int32(g.Len())), r.Int32N(int32(g.Len()))
		for len(g.Labels(n)) > 1000 {
			n = r.Int32N(int32(g.Len()))
		}
		return func() {
			g.SetText(n, textOf(other))
			g.Targets(n)
		}
	})
}

// BenchmarkEdgeAdded adds an undirected edge between two random nodes of
// debian-packages, and makes the targets of both.
func BenchmarkEdgeAdded(b *testing.B) {
	g := loadDebian(b).live(b)
	r := rand.New(rand.NewPCG(1, 1))
	measure(b, func() func() {
		n, other := r.Int32N(int32(g.Len())), r.Int32N(int32(g.Len()))
		return func() {
			g.AddEdge(n, other)
			g.AddEdge(other, n)
			g.Targets(n)
			g.Targets(other)
		}
	})
}

// measure times changes one by one.
func measure(b *testing.B, change func() func()) {
	b.Helper()
	var took []time.Duration
	for b.Loop() {
		do := change()
		begin := time.Now()
		do()
		took = append(took, time.Since(begin))
	}
	slices.SortFunc(took, cmp.Compare)
	var total time.Duration
	for _, d := range took {
		total += d
	}
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	b.ReportMetric(us(total)/float64(len(took)), "µs/op")
	b.ReportMetric(us(took[len(took)/2]), "µs-p50")
	b.ReportMetric(us(took[len(took)*99/100]), "µs-p99")
	b.ReportMetric(us(took[len(took)-1]), "µs-max")
}

// BenchmarkRouting asks where a label newer than the tree is best put: by its
// neighbours' texts (PIFA), by its own text, or anywhere. It reports the mean cosine
// of the label's PIFA to the centroid of the leaf chosen, for a fifth of the
// nodes of debian-packages, and how often the text finds the leaf, and the coarsest
// cluster, that PIFA finds.
func BenchmarkRouting(b *testing.B) {
	all := loadDebian(b).shuffled()
	n := all.labels.Rows
	begin := n * 4 / 5
	for b.Loop() {
		base, features := all.first(begin).fresh(b, labeltree.Options{Seed: 1})
		_, later := all.fresh(b, labeltree.Options{Seed: 1})
		last := base.Levels() - 1
		route := func(vectors []float32) *live.Tree {
			tree, err := live.NewTree(base, features, debianDim, live.Options{MaxLeafSize: n}) // never splits
			if err != nil {
				b.Fatal(err)
			}
			for l := begin; l < n; l++ {
				if err := tree.Place(int32(l), vectors[l*debianDim:(l+1)*debianDim]); err != nil {
					b.Fatal(err)
				}
			}
			return tree
		}
		byPIFA, byText := route(later), route(all.projected)
		r := rand.New(rand.NewPCG(1, 1))
		var cosine [3]float64
		var count, sameLeaf, sameTop float64
		for l := begin; l < n; l++ {
			if byPIFA.Cluster(0, l) < 0 || byText.Cluster(0, l) < 0 {
				continue
			}
			count++
			z := later[l*debianDim : (l+1)*debianDim]
			for k, leaf := range []int32{byPIFA.Cluster(last, l), byText.Cluster(last, l),
				r.Int32N(int32(base.Clusters(last)))} {
				cosine[k] += cosineTo(z, features, base.Members(last, leaf))
			}
			if byPIFA.Cluster(last, l) == byText.Cluster(last, l) {
				sameLeaf++
			}
			if byPIFA.Cluster(0, l) == byText.Cluster(0, l) {
				sameTop++
			}
		}
		b.ReportMetric(cosine[0]/count, "cosine-pifa")
		b.ReportMetric(cosine[1]/count, "cosine-text")
		b.ReportMetric(cosine[2]/count, "cosine-random")
		b.ReportMetric(sameLeaf/count, "same-leaf")
		b.ReportMetric(sameTop/count, "same-top")
	}
}

// cosineTo is the cosine of z to the sum of the members' features.
func cosineTo(z, features []float32, members []int32) float64 {
	var dot, square float64
	for j, v := range z {
		var sum float64
		for _, m := range members {
			sum += float64(features[int(m)*debianDim+j])
		}
		dot += float64(v) * sum
		square += sum * sum
	}
	return dot / math.Sqrt(max(square, 1e-30))
}
