package xmc

import (
	"math"
	"slices"
	"testing"

	"giantstream/featurize/sparse"
	"giantstream/train/numeric"
)

// filled returns heads of random vectors for batches of one.
func filled(p *Problem, dim int, o Options) *Heads {
	h := NewHeads(p, dim, 1, o)
	r := numeric.NewRand(3)
	for _, w := range h.Weights {
		for i := range w {
			w[i] = float32(r.Float64() - 0.5)
		}
	}
	return h
}

// TestGradientMatchesFiniteDifferences checks dz for every loss and kind of
// negatives, and the update's direction through the loss after a step.
func TestGradientMatchesFiniteDifferences(t *testing.T) {
	const dim = 8
	p := large(t)
	// Of the three labels two are in one cluster, so that counts matter.
	targets := p.Targets(42)
	for l := range targets {
		targets[l].Value = append([]float32{2}, targets[l].Value[1:]...)
	}
	r := numeric.NewRand(4)
	z := make([]float32, dim)
	for i := range z {
		z[i] = float32(r.Float64()-0.5) / 2
	}
	for name, o := range map[string]Options{
		"softmax":                          {},
		"softmax over siblings":            {Negatives: TFN},
		"squared hinge":                    {Loss: SquaredHinge},
		"squared hinge, weights":           {Loss: SquaredHinge, CountWeights: true, Scale: 2},
		"cross-entropy":                    {Loss: CrossEntropy},
		"cross-entropy, matched negatives": {Loss: CrossEntropy, Negatives: MAN, Matched: 3},
	} {
		t.Run(name, func(t *testing.T) {
			h := filled(p, dim, o)
			span := Span{To: len(p.Levels)}
			loss := func(z []float32) float64 {
				return filled(p, dim, o).Forward(0, z, targets, span, 2, make([]float32, dim))
			}
			dz := make([]float32, dim)
			before := h.Forward(0, z, targets, span, 2, dz)
			for i := range z {
				// Central differences; candidates must not change, so a small step.
				const eps = 1e-3
				x := slices.Clone(z)
				x[i] = z[i] + eps
				above := loss(x)
				x[i] = z[i] - eps
				want := (above - loss(x)) / (2 * eps)
				if math.Abs(want-float64(dz[i])) > 0.02*(1+math.Abs(want)) {
					t.Errorf("∂loss/∂z[%d] = %.4f, finite differences %.4f", i, dz[i], want)
				}
			}
			h.Update(1, 0.01, 1, 1)
			if after := h.Forward(0, z, targets, span, 2, dz); after >= before {
				t.Errorf("loss %.4f before a step, %.4f after", before, after)
			}
		})
	}
}

func TestNegativesAreOfTheChosenKind(t *testing.T) {
	p := large(t)
	for _, c := range []struct {
		kind Negatives
		want []int32
	}{
		{Both, []int32{0, 1, 6, 7, 500, 501}},
		{TFN, []int32{0, 1, 500, 501}},
		{MAN, []int32{0, 6, 7, 500, 501}}, // 250's children and 3's, and the positives
	} {
		h := NewHeads(p, 1, 1, Options{Negatives: c.kind})
		b := &slot{best: []int32{3, 250}}
		var l scored
		if h.choose(9, []int32{0, 500}, b, &l); !slices.Equal(l.candidates, c.want) {
			t.Errorf("kind %d: candidates %v, want %v", c.kind, l.candidates, c.want)
		}
	}
}

// TestHingeIsTheMeanOverRealCandidates: an instance costs the same whatever
// the candidates of others in its batch.
func TestHingeIsTheMeanOverRealCandidates(t *testing.T) {
	o := Options{Loss: SquaredHinge}
	scores := []float32{0.5, 0.5, -2, 2}
	loss := o.price(scores, []float32{1, 0, 0, 0})
	if want := (0.25 + 2.25 + 0 + 9) / 4; math.Abs(loss-want) > 1e-6 {
		t.Errorf("loss %.4f, want %.4f", loss, want)
	}
	if want := []float32{-0.25, 0.75, 0, 1.5}; !slices.Equal(scores, want) {
		t.Errorf("gradient %v, want %v", scores, want)
	}
}

func TestSolveIsRidgeRegression(t *testing.T) {
	const dim, rows, lambda = 3, 60, 0.1
	p, err := fromLevels([]Level{{Clusters: 2}, {Clusters: 3, Parent: []int32{0, 0, 1}}})
	if err != nil {
		t.Fatal(err)
	}
	r := numeric.NewRand(2)
	z := make([]float32, rows*dim)
	positives := make([]sparse.Vector, rows)
	for i := range z {
		z[i] = float32(r.Float64() - 0.3)
	}
	for i := range positives {
		positives[i] = sparse.Vector{Index: []int32{int32(i % 3)}, Value: []float32{1}}
	}
	h := NewHeads(p, dim, 1, Options{})
	if err := h.Solve(1, z, positives, lambda); err != nil {
		t.Fatal(err)
	}
	// At the solution the gradient Zᵀ(Zw − y) + ridge·w vanishes.
	ridge := lambda * float64(numeric.Dot(z, z)) / dim
	for c := range 3 {
		w := h.row(1, int32(c))
		var gradient [dim]float64
		for d := range gradient {
			gradient[d] = ridge * float64(w[d])
		}
		for i := range rows {
			row, y := z[i*dim:(i+1)*dim], -1.0
			if i%3 == c {
				y = 1
			}
			e := float64(numeric.Dot(row, w)) - y
			for d := range gradient {
				gradient[d] += e * float64(row[d])
			}
		}
		for d, g := range gradient {
			if math.Abs(g) > 1e-4 {
				t.Errorf("cluster %d: gradient %g in direction %d", c, g, d)
			}
		}
	}
	h.Inherit(1) // level 0 is still zero
	if slices.ContainsFunc(h.Weights[1], func(v float32) bool { return v != 0 }) {
		t.Error("children of zero vectors are not zero")
	}
}

func TestMeansPointToTheInstances(t *testing.T) {
	p, err := fromLevels([]Level{{Clusters: 2}, {Clusters: 3, Parent: []int32{0, 0, 1}}})
	if err != nil {
		t.Fatal(err)
	}
	h := NewHeads(p, 3, 1, Options{}) // embeddings of 2 and a bias
	both := Span{To: 2}
	h.AddMeans(both, []float32{1, 0}, []sparse.Vector{{Index: []int32{0}, Value: []float32{4}}, {Index: []int32{0,
		1}, Value: []float32{3, 1}}})
	h.AddMeans(both, []float32{0, 1}, []sparse.Vector{{Index: []int32{0}, Value: []float32{3}}, {Index: []int32{1},
		Value: []float32{3}}})
	h.EndMeans(both)
	for level, want := range [][]float32{
		{0.8, 0.6, 0, 0, 0, 0},
		{1, 0, 0, float32(1 / math.Sqrt(10)), float32(3 / math.Sqrt(10)), 0, 0, 0, 0},
	} {
		for i, v := range h.Weights[level] {
			if math.Abs(float64(v-want[i])) > 1e-6 {
				t.Errorf("level %d: %v, want %v", level, h.Weights[level], want)
				break
			}
		}
	}
}

func TestClipAndDecay(t *testing.T) {
	p := large(t)
	targets := p.Targets(1)
	z := []float32{3, 4}
	step := func(o Options) *Heads {
		h := filled(p, 2, o)
		h.Forward(0, z, targets, Span{To: 1}, 1, make([]float32, 2))
		h.Update(1, 0.1, 1, 1)
		return h
	}
	free, clipped, decayed := step(Options{}), step(Options{Clip: 1e-3}), step(Options{Decay: 0.5})
	// Adam's first mean is a tenth of the gradient.
	if norm := 10 * math.Sqrt(float64(numeric.Dot(clipped.Mean[0], clipped.Mean[0]))); math.Abs(norm-1e-3) > 1e-6 {
		t.Errorf("clipped gradient has length %g, want 0.001", norm)
	}
	start := filled(p, 2, Options{})
	for i, w := range decayed.Weights[0] {
		if want := free.Weights[0][i] - 0.05*start.Weights[0][i]; math.Abs(float64(w-want)) > 1e-6 {
			t.Errorf("decayed weight %g, want %g", w, want)
		}
	}
}
