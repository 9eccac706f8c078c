package labeltree

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"giantstream/featurize/sparse"
)

// hash of numbers of fixed size.
func hash(values ...any) string {
	h := sha256.New()
	for _, v := range values {
		if err := binary.Write(h, binary.LittleEndian, v); err != nil {
			panic(err) // of a type without a size: the test is wrong
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// TestTreesOfPowersOfTwoStayAsTheyWere: sums are exact here, so only another
// algorithm gives another tree.
func TestTreesOfPowersOfTwoStayAsTheyWere(t *testing.T) {
	values, m := grid(1500, 100)
	for _, tc := range []struct {
		levels []int
		seed   uint64
		want   string
	}{
		{[]int{2, 8, 32, 256}, 0, "2dad7f2e62f233bf"},
		{[]int{2, 8, 32, 256}, 1, "06e5170ffd4ee21e"},
		{[]int{1}, 0, "a6bedce1e512d653"},
		{[]int{16, 64}, 0, "56ba11950a82ac04"},
		{[]int{16, 64}, 1, "54cc740c68f5bb86"},
		{[]int{4, 1024}, 0, "4f70c8069df17520"},
		{[]int{4, 1024}, 1, "cdd633ae13e4778c"},
	} {
		opt := Options{Levels: tc.levels, Seed: tc.seed}
		tree, err := Build(Sparse(m), opt)
		if err != nil {
			t.Fatal(err)
		}
		for name, got := range map[string]string{"sparse": hash(tree.leafOf), "dense": hash(build(t, values,
			100, opt).leafOf)} {
			if got != tc.want {
				t.Errorf("%s, levels %v, seed %d: %s, want %s", name, tc.levels, tc.seed, got, tc.want)
			}
		}
	}
}

// noise returns n rows of length 1. They are themselves the same on any
// machine: the squares add up as integers.
func noise(n, dim int) (values []float32, m *sparse.Matrix) {
	r := rand.New(rand.NewPCG(uint64(n), uint64(dim)))
	m = &sparse.Matrix{Cols: dim}
	for range n {
		row := make([]int, dim)
		square := 0
		for j := range row {
			row[j] = r.IntN(2001) - 1000
			square += row[j] * row[j]
		}
		length := math.Sqrt(float64(square))
		var v sparse.Vector
		for j, x := range row {
			v.Index, v.Value = append(v.Index, int32(j)), append(v.Value, float32(float64(x)/length))
		}
		m.Append(v)
		values = append(values, v.Value...)
	}
	return values, m
}

// TestSplitsAreTheSameOnAnyMachine looks at every bit of the products and
// scores that decide. .ci/run repeats it with GOAMD64=v3, and looks at what is compiled for arm64.
func TestSplitsAreTheSameOnAnyMachine(t *testing.T) {
	const n, dim = 500, 51
	values, m := noise(n, dim)
	x, err := Dense(values, dim)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int32(n) { // columns of one entry
		m.Index[m.Start[i]] = i%7 + dim
	}
	m.Cols += 7
	rows := make([]int32, n)
	for i := range rows {
		rows[i] = int32(i)
	}
	compacted, _ := Sparse(m).compact(rows[:7], nil)
	for _, tc := range []struct {
		name   string
		points points
		rows   []int32
		sample int
		want   string
	}{
		{"dense", x, rows, 0, "f9d61a51941d88f5"},
		{"dense, sampled", x, rows, 99, "430d44998bce08c4"},
		{"sparse", Sparse(m), rows, 0, "ad0c25720690f9e3"},
		{"sparse, sampled", Sparse(m), rows, 99, "5ba159d4c6014693"},
		{"compacted", compacted, rows[:7], 0, "e81a5fd898283021"},
	} {
		s := newSplitter(tc.points)
		s.sample = tc.sample
		got := slices.Clone(tc.rows)
		s.split(got, len(got)/3, rand.New(rand.NewPCG(1, 2)), 1)
		if got := hash(got, s.t, s.l, s.keys); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}
