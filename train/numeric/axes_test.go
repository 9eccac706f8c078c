package numeric_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"giantstream/train/numeric"
)

// cloud returns n rows that spread by 1/(k+1) along axis k of a fixed random basis.
func cloud(n, dim int) []float32 {
	r := numeric.NewRand(1)
	normal := func() float32 {
		var s float64
		for range 12 {
			s += r.Float64()
		}
		return float32(s - 6)
	}
	basis := make([]float32, dim*dim)
	for i := range basis {
		basis[i] = normal()
	}
	rows := make([]float32, n*dim)
	for i := range n {
		for k := range dim {
			numeric.Axpy(normal()/float32(k+1), basis[k*dim:(k+1)*dim], rows[i*dim:(i+1)*dim])
		}
		numeric.Normalize(rows[i*dim : (i+1)*dim])
	}
	return rows
}

func TestPrincipalAxesOrderDimensionsAndKeepCosines(t *testing.T) {
	for _, tt := range []struct{ n, dim int }{{1000, 24}, {3, 24}, {1, 1}, {0, 5}, {257, 7}} {
		rows := cloud(tt.n, tt.dim)
		axes, err := numeric.PrincipalAxes(rows, tt.dim)
		if err != nil {
			t.Fatal(err)
		}
		for i := range tt.dim {
			for j := range tt.dim {
				var dot float64
				for k := range tt.dim {
					dot += float64(axes[k*tt.dim+i]) * float64(axes[k*tt.dim+j])
				}
				want := 0.0
				if i == j {
					want = 1
				}
				if math.Abs(dot-want) > 1e-5 {
					t.Fatalf("%d×%d: axes %d and %d have the product %g, want %g", tt.n, tt.dim, i, j, dot, want)
				}
			}
		}
		rotated := slices.Clone(rows)
		numeric.Rotate(rotated, axes, tt.dim)
		energy := make([]float64, tt.dim)
		for i := range tt.n {
			a, b := rotated[:tt.dim], rotated[i*tt.dim:(i+1)*tt.dim]
			before := numeric.Dot(rows[:tt.dim], rows[i*tt.dim:(i+1)*tt.dim])
			if after := numeric.Dot(a, b); math.Abs(float64(after-before)) > 1e-5 {
				t.Fatalf("%d×%d: the cosine of rows 0 and %d was %g and is %g", tt.n, tt.dim, i, before, after)
			}
			for k, v := range b {
				energy[k] += float64(v) * float64(v)
			}
		}
		for k := 1; k < tt.dim; k++ {
			if energy[k] > energy[k-1]+1e-4 {
				t.Errorf("%d×%d: dimension %d has the energy %g, the one before %g", tt.n, tt.dim, k, energy[k], energy[k-1])
			}
		}
	}
}

func TestPrincipalAxesHaveFixedSigns(t *testing.T) {
	const n, dim = 500, 12
	rows := cloud(n, dim)
	axes, err := numeric.PrincipalAxes(rows, dim)
	if err != nil {
		t.Fatal(err)
	}
	for k := range dim {
		var largest float32
		for i := range dim {
			if v := axes[i*dim+k]; math.Abs(float64(v)) > math.Abs(float64(largest)) {
				largest = v
			}
		}
		if largest <= 0 {
			t.Errorf("the largest component of axis %d is %g, want it positive", k, largest)
		}
	}
}

func TestRotatedRowDependsOnItselfAlone(t *testing.T) {
	const n, dim = 600, 33
	rows := cloud(n, dim)
	axes, err := numeric.PrincipalAxes(rows, dim)
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Clone(rows)
	numeric.Rotate(all, axes, dim)
	for _, i := range []int{0, 1, 255, 256, n - 1} {
		one := slices.Clone(rows[i*dim : (i+1)*dim])
		numeric.Rotate(one, axes, dim)
		if !slices.Equal(one, all[i*dim:(i+1)*dim]) {
			t.Errorf("row %d is another one without the rows beside it", i)
		}
	}
}

func TestPrincipalAxesRefuse(t *testing.T) {
	nan := float32(math.NaN())
	for name, rows := range map[string][]float32{"NaN": {1, nan}, "infinite": {float32(math.Inf(1)), 0},
		"ragged": {1, 2, 3}} {
		if _, err := numeric.PrincipalAxes(rows, 2); !errors.Is(err, numeric.ErrNoAxes) {
			t.Errorf("%s: got %v, want ErrNoAxes", name, err)
		}
	}
}

// Within the first 64, 128, … dimensions all cosines stay, and the energy of a group is even.
func TestMixedGroupsKeepCosinesOfPrefixes(t *testing.T) {
	for _, dim := range []int{16, 64, 100, 128, 200, 256} {
		const n = 600
		rows := cloud(n, dim)
		axes, err := numeric.PrincipalAxes(rows, dim)
		if err != nil {
			t.Fatal(err)
		}
		ordered, mixed := slices.Clone(rows), slices.Clone(rows)
		numeric.Rotate(ordered, axes, dim)
		numeric.MixGroups(axes, dim)
		numeric.Rotate(mixed, axes, dim)
		for _, k := range []int{64, 128, dim} {
			k = min(k, dim)
			for i := range n {
				a, b := numeric.Dot(ordered[:k], ordered[i*dim:i*dim+k]), numeric.Dot(mixed[:k], mixed[i*dim:i*dim+k])
				if math.Abs(float64(a-b)) > 1e-5 {
					t.Fatalf("%d of %d dimensions: the product of rows 0 and %d was %g and is %g", k, dim, i, a, b)
				}
			}
		}
		largest := func(rows []float32) (sum float64) {
			for row := range slices.Chunk(rows, dim) {
				sum += float64(max(slices.Max(row), -slices.Min(row)))
			}
			return sum / n
		}
		if a, b := largest(ordered), largest(mixed); b > 0.8*a {
			t.Errorf("%d dimensions: the largest number of a row is %.3f on average and was %.3f", dim, b, a)
		}
	}
}
