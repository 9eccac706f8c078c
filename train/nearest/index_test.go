package nearest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"giantstream/train/numeric"
)

func TestProductsAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, dim := range []int{16, 32, 240, 256, 1024} {
		query, codes := make([]int16, dim), make([]int8, 7*dim)
		for i := range query {
			query[i] = int16(rng.IntN(2*math.MaxInt16+1) - math.MaxInt16)
		}
		for i := range codes {
			codes[i] = int8(rng.IntN(255) - 127)
		}
		for i := range dim { // the largest sum that round and encode make
			codes[i] = 127
		}
		for rows := range 8 {
			got, want := make([]int32, rows), make([]int32, rows)
			products(got, query, codes)
			plainProducts(want, query, codes)
			if !slices.Equal(got, want) {
				t.Errorf("dim %d, %d rows: %v, want %v", dim, rows, got, want)
			}
		}
	}
}

// The largest query and the largest codes stay within 32 bits, at any dimension.
func TestLargestProductFits(t *testing.T) {
	for _, dim := range []int{1, 16, 256, 768, 4096} {
		v := make([]float32, dim)
		for i := range v {
			v[i] = 1
		}
		numeric.Normalize(v)
		query, codes, out := make([]int16, padded(dim)), make([]int8, padded(dim)), make([]int32, 1)
		scale := round(query, v)
		scale *= encode(codes, nil, v)
		products(out, query, codes)
		if cosine := float64(out[0]) * float64(scale); math.Abs(cosine-1) > 1e-4*math.Sqrt(float64(dim)) {
			t.Errorf("dim %d: the cosine of a vector with itself is %v", dim, cosine)
		}
	}
}

// clustered draws unit vectors about centres, as embeddings of a catalog lie.
func clustered(rng *rand.Rand, n, dim, clusters int, spread float64) []float32 {
	centers := make([]float32, clusters*dim)
	for i := range centers {
		centers[i] = float32(rng.NormFloat64())
	}
	out := make([]float32, n*dim)
	for i := range n {
		c := rng.IntN(clusters)
		row := out[i*dim : (i+1)*dim]
		for j := range row {
			row[j] = centers[c*dim+j] + float32(rng.NormFloat64()*spread)
		}
		numeric.Normalize(row)
	}
	return out
}

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = strconv.Itoa(i)
	}
	return out
}

// trained returns an index of the first n vectors, in cells.
func trained(t testing.TB, n, dim int, ids []string, vectors []float32) *Index {
	t.Helper()
	x := New(dim)
	var sample []float32
	for i := range Sample(n) {
		at := i * n / Sample(n)
		sample = append(sample, vectors[at*dim:(at+1)*dim]...)
	}
	x.Train(n, sample)
	fill(t, x, ids, vectors[:n*dim])
	x.Calibrate()
	return x
}

func fill(t testing.TB, x *Index, ids []string, vectors []float32) {
	t.Helper()
	if err := x.Set(ids, vectors); err != nil {
		t.Fatal(err)
	}
}

// exact returns the k nearest by cosines in float64.
func exact(ids []string, vectors, query []float32, k int) (out []Neighbour) {
	dim := len(query)
	for i, id := range ids {
		var s float64
		for j, q := range query {
			s += float64(q) * float64(vectors[i*dim+j])
		}
		out = append(out, Neighbour{id, float32(s)})
	}
	slices.SortFunc(out, better)
	return out[:min(k, len(out))]
}

// A small index finds what an exact search in float64 finds, but for pairs that twelve bits cannot tell apart.
func TestSearchIsExactUpToTheCodes(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	const n, dim, k = 2000, 100, 10 // 100: not a multiple of 16
	ids, vectors := names(n), clustered(rng, n, dim, 20, 0.5)
	x := New(dim)
	fill(t, x, ids, vectors)
	hits := 0
	for q := range 100 {
		query := vectors[q*dim : (q+1)*dim]
		got, want := x.Search(query, k, nil, nil), exact(ids, vectors, query, k)
		if len(got) != k {
			t.Fatalf("%d answers, want %d", len(got), k)
		}
		for i := range got {
			if math.Abs(float64(got[i].Cosine-want[i].Cosine)) > 0.0005 {
				t.Errorf("query %d, rank %d: %v, want %v", q, i, got[i], want[i])
			}
			if slices.ContainsFunc(want, func(w Neighbour) bool { return w.ID == got[i].ID }) {
				hits++
			}
		}
	}
	if recall := float64(hits) / (100 * k); recall < 0.99 {
		t.Errorf("recall@%d %.3f", k, recall)
	}
}

// Answers are a function of the vectors, not of the order in which they came, went and changed.
func TestHistoryDoesNotMatter(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	const n, dim = 25_000, 16 // enough for cells
	ids, vectors := names(n), clustered(rng, n, dim, 300, 0.3)
	for i := 1; i < 40; i++ { // equal vectors: ties
		copy(vectors[i*dim:(i+1)*dim], vectors[:dim])
	}
	sample := func() []float32 {
		size := Sample(n)
		var out []float32
		for i := range size {
			at := i * n / size
			out = append(out, vectors[at*dim:(at+1)*dim]...)
		}
		return out
	}
	straight := New(dim)
	straight.Train(n, sample())
	fill(t, straight, ids, vectors)
	straight.Calibrate()

	crooked := New(dim)
	crooked.Train(n, sample())
	order := rng.Perm(n)
	for _, i := range order[:5000] { // first with another's vector
		fill(t, crooked, ids[i:i+1], vectors[order[0]*dim:(order[0]+1)*dim])
	}
	for i := range 3000 {
		fill(t, crooked, []string{fmt.Sprint("gone", i)}, vectors[i*dim:(i+1)*dim])
	}
	for _, i := range order {
		fill(t, crooked, ids[i:i+1], vectors[i*dim:(i+1)*dim])
	}
	for i := range 3000 {
		crooked.Remove(fmt.Sprint("gone", i))
	}
	crooked.Remove("never there")
	crooked.Calibrate()

	if straight.Len() != n || crooked.Len() != n {
		t.Fatalf("%d and %d vectors, want %d", straight.Len(), crooked.Len(), n)
	}
	all, probed := straight.Cells()
	if a, p := crooked.Cells(); a != all || p != probed || all < 2 || probed < 1 || probed > all/2 {
		t.Errorf("%d of %d cells, and %d of %d", probed, all, p, a)
	}
	if *straight.tails != *crooked.tails {
		t.Error("what is expected of the cells differs")
	}
	for q := range 200 {
		query := vectors[q*dim : (q+1)*dim]
		if a, b := straight.Search(query, 20, nil, nil), crooked.Search(query, 20, nil, nil); !slices.Equal(a, b) {
			t.Fatalf("query %d: %v and %v", q, a, b)
		}
	}
	if got := straight.Search(vectors[:dim], 3, nil, nil); got[0].ID != "0" || got[1].ID != "1" || got[2].ID != "10" {
		t.Errorf("among equals the smaller ids come first; got %v", got)
	}
}

// The cells that a query looks into are enough whatever the vectors look like, for queries that Calibrate did not
// see as well.
func TestProbesAreMeasured(t *testing.T) {
	const n, dim, k = 24_000, 32, 10
	for name, spread := range map[string]float64{"tight": 0.2, "loose": 0.8, "none": 50} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(4, 4))
			vectors := clustered(rng, n+200, dim, 200, spread)
			ids := names(n)
			x := trained(t, n, dim, ids, vectors)
			hits := 0
			for q := n; q < n+200; q++ {
				query := vectors[q*dim : (q+1)*dim]
				all := x.newSearch(query, k, nil)
				for c := range x.cells {
					all.scan(int32(c))
				}
				want := all.done()
				for _, g := range x.Search(query, k, nil, nil) {
					if slices.ContainsFunc(want, func(w Neighbour) bool { return w.ID == g.ID }) {
						hits++
					}
				}
			}
			all, probed := x.Cells()
			recall := float64(hits) / (200 * k)
			t.Logf("%d of %d cells, recall@%d %.3f", probed, all, k, recall)
			if recall < 0.95 {
				t.Errorf("recall@%d %.3f with %d of %d cells", k, recall, probed, all)
			}
		})
	}
}

// A stored number is off by a sixteenth of a step at most, and more vectors alike than a search keeps candidates for
// are answered by id.
func TestVectorsAreStoredInTwelveBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	const n, dim = 3000, 37
	x, ids := New(dim), names(n)
	vectors := clustered(rng, n, dim, 1, 0.01)
	fill(t, x, ids, vectors)
	got := make([]float32, dim)
	for i, id := range ids {
		want := vectors[i*dim : (i+1)*dim]
		x.Vector(id, got)
		for j := range want {
			if off := math.Abs(float64(got[j] - want[j])); off > float64(largest(want))/127/16*1.001 {
				t.Fatalf("number %d of vector %d: %v, want %v", j, i, got[j], want[j])
			}
		}
		copy(vectors[i*dim:(i+1)*dim], vectors[:dim])
	}
	fill(t, x, ids, vectors)
	slices.Sort(ids)
	for i, g := range x.Search(vectors[:dim], 20, nil, nil) {
		if g.ID != ids[i] || math.Abs(float64(g.Cosine-1)) > 1e-4 {
			t.Errorf("rank %d of equal vectors: %v, want %s", i, g, ids[i])
		}
	}
}

func TestSmallAndOddIndexes(t *testing.T) {
	x := New(3)
	x.Calibrate()
	if got := x.Search([]float32{1, 0, 0}, 5, nil, nil); len(got) != 0 {
		t.Errorf("an empty index answers %v", got)
	}
	fill(t, x, []string{"a", "zero"}, []float32{2, 0, 0, 0, 0, 0})
	if got := x.Search([]float32{1, 0, 0}, 5, nil, nil); len(got) != 1 || got[0].ID != "a" ||
		math.Abs(float64(got[0].Cosine-1)) > 1e-4 {
		t.Errorf("got %v, want a alone", got)
	}
	for name, got := range map[string][]Neighbour{
		"none is in":   x.Search([]float32{1, 0, 0}, 5, []uint64{0}, nil),
		"no answers":   x.Search([]float32{1, 0, 0}, 0, nil, nil),
		"length 0":     x.Search([]float32{0, 0, 0}, 5, nil, nil),
		"2 dimensions": x.Search([]float32{1, 0}, 5, nil, nil),
	} {
		if len(got) != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
	fill(t, x, []string{"a"}, []float32{0, 0, 0}) // its text is gone
	if x.Len() != 0 || x.Vector("a", make([]float32, 3)) {
		t.Errorf("a vector of length 0 stays")
	}
	for _, id := range []string{"a", "zero"} {
		h, known := x.Handle(id)
		if !known || h >= int32(x.Handles()) {
			t.Errorf("%s, which has no vector, has the handle %d, %t", id, h, known)
		}
		x.Remove(id)
		if _, known := x.Handle(id); known {
			t.Errorf("%s is still known", id)
		}
	}
	if err := x.Set([]string{"a"}, []float32{1}); err == nil {
		t.Error("a vector of another dimension is taken")
	}
}

// some returns a set of the first n handles in which those are that f says.
func some(n int, f func(i int) bool) []uint64 {
	in := make([]uint64, (n+63)/64)
	for i := range n {
		if f(i) {
			in[i/64] |= 1 << (i % 64)
		}
	}
	return in
}

// Whatever share of the vectors may be an answer, and wherever these lie, there are k answers, they are among those
// that may be, and nearly all are the nearest of these. Where they lie about the query, few cells are looked into.
func TestSearchAmongSome(t *testing.T) {
	const n, dim, k, queries = 40_000, 32, 10, 20
	rng := rand.New(rand.NewPCG(5, 5))
	ids, vectors := names(n), clustered(rng, n+queries, dim, 300, 0.5)
	x := trained(t, n, dim, ids, vectors)
	vector := func(i int) []float32 { return vectors[i*dim : (i+1)*dim] }
	// Those that may be an answer lie anywhere, about the query, or about the farthest of some vectors.
	for place, about := range map[string]func(q int) []float32{
		"anywhere": func(int) []float32 { return nil },
		"near":     vector,
		"far": func(q int) []float32 {
			return vector(slices.MinFunc(rng.Perm(n)[:50], func(a, b int) int {
				return cmp.Compare(numeric.Dot(vector(a), vector(q)), numeric.Dot(vector(b), vector(q)))
			}))
		}} {
		hits, total := map[float64]float64{}, map[float64]float64{}
		cells := 0
		for q := n; q < n+queries; q++ {
			value := make([]float32, n)
			if anchor := about(q); anchor != nil {
				numeric.Gemm(numeric.TransB, 1, n, dim, anchor, vectors[:n*dim], value)
			} else {
				for i := range value {
					value[i] = rng.Float32()
				}
			}
			ordered := slices.Sorted(slices.Values(value))
			for _, share := range []float64{1, 0.7, 0.4, 0.1, 0.01, 0.0001} {
				in := some(n, func(i int) bool { return value[i] >= ordered[n-int(share*n)] })
				cells += x.newSearch(vector(q), k, in).scanLikely(x.order(vector(q)))
				all := x.newSearch(vector(q), k, in)
				all.compareAll()
				got, want := x.Search(vector(q), k, in, nil), all.done()
				if len(got) != min(k, int(share*n)) || len(got) != len(want) {
					t.Fatalf("%v of all, %s: %d answers, not %d", share, place, len(got), len(want))
				}
				total[share] += float64(len(want))
				for _, g := range got {
					if h, _ := x.Handle(g.ID); !isIn(in, h) {
						t.Fatalf("%v of all, %s: %s may not be an answer", share, place, g.ID)
					}
					if slices.Contains(want, g) {
						hits[share]++
					}
				}
			}
		}
		if most := queries * len(hits) * len(x.cells); place == "near" && cells > most/4 {
			t.Errorf("near: %d of %d cells", cells, most)
		}
		for share, hits := range hits {
			if recall := hits / total[share]; recall < Recall {
				t.Errorf("%v of all, %s: recall@%d %.3f", share, place, k, recall)
			}
		}
	}
}

// A search has k answers however few vectors are in the cells that it looks into.
func TestSearchFills(t *testing.T) {
	const n, dim = 24_000, 16
	rng := rand.New(rand.NewPCG(6, 6))
	ids, vectors := names(n), clustered(rng, n, dim, 2000, 0.05)
	x := trained(t, n, dim, ids, vectors)
	for _, k := range []int{1, 1000, n, n + 1} {
		if got := x.Search(vectors[:dim], k, nil, nil); len(got) != min(k, n) {
			t.Errorf("%d answers, not %d", len(got), k)
		}
		in := some(n, func(i int) bool { return i%2 == 0 })
		if got := x.Search(vectors[:dim], k, in, nil); len(got) != min(k, n/2) {
			t.Errorf("%d answers among half, not %d", len(got), k)
		}
	}
}

// Half of the vectors have more numbers than queries, so that they are longer: they are found as the others are.
func TestLengthsMakeUpForWhatQueriesLack(t *testing.T) {
	const n, queries, text, dim, k, more = 24_000, 20, 32, 48, 10, 1.4
	for name, spread := range map[string]float64{"tight": 0.2, "loose": 0.8} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(5, 5))
			texts, others := clustered(rng, n+queries, text, 200, spread), clustered(rng, n, dim-text, 100, 0.5)
			vectors, lengths := make([]float32, n*dim), make([]float32, n)
			for i := range n {
				row := vectors[i*dim : (i+1)*dim]
				copy(row, texts[i*text:(i+1)*text])
				if i%2 == 0 {
					for j, v := range others[i*(dim-text) : (i+1)*(dim-text)] {
						row[text+j] = more * v
					}
				}
				lengths[i] = numeric.Normalize(row)
			}
			ids := names(n)
			x := trained(t, n, dim, ids, vectors)
			lengthOf := func(h int32) float32 {
				i, _ := strconv.Atoi(x.ids[h])
				return lengths[i]
			}
			longer := 0
			for q := n; q < n+queries; q++ {
				query := make([]float32, dim)
				copy(query, texts[q*text:(q+1)*text])
				want := exact(ids, texts[:n*text], texts[q*text:(q+1)*text], k)
				for rank, g := range x.Search(query, k, nil, lengthOf) {
					if math.Abs(float64(g.Cosine-want[rank].Cosine)) > 0.01 {
						t.Fatalf("query %d, rank %d: %v, want %v", q, rank, g, want[rank])
					}
					if i, _ := strconv.Atoi(g.ID); i%2 == 0 {
						longer++
					}
				}
			}
			if share := float64(longer) / (queries * k); share < 0.4 || share > 0.6 {
				t.Errorf("%.2f of the answers are longer", share)
			}
		})
	}
}
