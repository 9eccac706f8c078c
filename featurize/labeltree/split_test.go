package labeltree

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"giantstream/featurize/sparse"
)

// grid returns n rows of eighths, sums of which are exact in float32 in any
// order. Some columns are of one row alone.
func grid(n, dim int) (values []float32, m *sparse.Matrix) {
	r := rand.New(rand.NewPCG(uint64(n), uint64(dim)))
	values = make([]float32, n*dim)
	m = &sparse.Matrix{Cols: dim}
	for i := range n {
		var v sparse.Vector
		for j := range dim {
			if r.IntN(3*j+3) < 3 || j == i+dim/2 {
				x := float32(1+r.IntN(8)) / 8
				values[i*dim+j] = x
				v.Index, v.Value = append(v.Index, int32(j)), append(v.Value, x)
			}
		}
		m.Append(v)
	}
	return values, m
}

// slowSplit is the algorithm as the package documentation has it.
func slowSplit(values []float32, dim, toLeft int, r *rand.Rand) (left, right []int32) {
	n := len(values) / dim
	right0 := r.IntN(n)
	left0 := (right0 + 1 + r.IntN(n-1)) % n
	row := func(i int) []float32 { return values[i*dim : (i+1)*dim] }
	direction := make([]float64, dim)
	for j := range direction {
		direction[j] = float64(row(right0)[j] - row(left0)[j])
	}
	var last []int
	for range maxIterations {
		score := make([]float32, n)
		order := make([]int, n)
		for i := range n {
			order[i] = i
			var s float64
			for j, x := range row(i) {
				s += float64(x) * direction[j]
			}
			score[i] = float32(s)
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(score[a], score[b]), cmp.Compare(a, b)) })
		slices.Sort(order[:toLeft])
		slices.Sort(order[toLeft:])
		if slices.Equal(order, last) {
			break
		}
		last = order
		unit := func(half []int) []float64 {
			sum, square := make([]float64, dim), 0.0
			for _, i := range half {
				for j, x := range row(i) {
					sum[j] += float64(x)
				}
			}
			for _, x := range sum {
				square += x * x
			}
			for j := range sum {
				sum[j] /= math.Sqrt(square)
			}
			return sum
		}
		l, r := unit(order[:toLeft]), unit(order[toLeft:])
		for j := range direction {
			direction[j] = r[j] - l[j]
		}
	}
	for k, i := range last {
		if k < toLeft {
			left = append(left, int32(i))
		} else {
			right = append(right, int32(i))
		}
	}
	return left, right
}

func TestSplitAgreesWithTheSlowWay(t *testing.T) {
	const dim = 120
	for _, n := range []int{3, 7, 50, 301, 900} {
		values, m := grid(n, dim)
		x, err := Dense(values, dim)
		if err != nil {
			t.Fatal(err)
		}
		rows := make([]int32, n)
		for i := range rows {
			rows[i] = int32(i)
		}
		compacted, _ := Sparse(m).compact(rows, nil)
		if n == 50 && compacted.width() >= dim {
			t.Errorf("%d rows: nothing was left out of %d columns", n, dim)
		}
		for seed := range uint64(3) {
			toLeft := []int{n / 2, n / 3, n * 7 / 10}[seed]
			left, right := slowSplit(values, dim, toLeft, rand.New(rand.NewPCG(seed, 9)))
			want := slices.Concat(left, right)
			for _, tc := range []struct {
				name    string
				points  points
				workers []int // each but the first with used scratch memory
			}{
				{"dense", x, []int{1, 3}},
				{"sparse", Sparse(m), []int{1, 3}},
				{"compacted", compacted, []int{1, 1}},
			} {
				s := newSplitter(tc.points)
				for _, workers := range tc.workers {
					got := slices.Clone(rows)
					s.split(got, toLeft, rand.New(rand.NewPCG(seed, 9)), workers)
					if !slices.Equal(got, want) {
						t.Errorf("%d of %d rows, seed %d, %s, %d workers:\n%v, want\n%v", toLeft, n, seed,
							tc.name, workers, got, want)
					}
				}
			}
		}
	}
}

// TestCompactedClustersGiveTheSameTree builds a tree deep enough for compact
// to be used on top of what it returned before.
func TestCompactedClustersGiveTheSameTree(t *testing.T) {
	const n, dim = 1500, 100
	values, m := grid(n, dim)
	x, err := Dense(values, dim)
	if err != nil {
		t.Fatal(err)
	}
	opt := Options{Levels: []int{2, 8, 32, 256}}
	want, err := Build(x, opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, opt.Workers = range []int{1, 2, 5} {
		got, err := Build(Sparse(m), opt)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.leafOf, want.leafOf) {
			t.Errorf("%d workers: the tree over sparse rows differs from that over dense ones", opt.Workers)
		}
	}
}
