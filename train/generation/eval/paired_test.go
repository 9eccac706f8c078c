package eval

import (
	"errors"
	"math"
	"testing"

	"giantstream/train/numeric"
)

// draws returns the scores of n edges by two embeddings. gain is added to the positives of one; the share own of the
// noise is different in the two.
func draws(seed uint64, n int, gain, own float64) (a, b LinkScores) {
	r := numeric.NewRand(seed)
	normal := func() (s float64) {
		for range 12 {
			s += r.Float64()
		}
		return s - 6
	}
	for k := range n {
		p, q := normal(), normal()
		one := func(gain float64) LinkScore {
			return LinkScore{Query: int32(k), Positive: 1 + gain + p + own*normal(), Negative: q + own*normal(),
				Rank: 1 + math.Floor(10*r.Float64())}
		}
		a, b = append(a, one(gain)), append(b, one(0))
	}
	return a, b
}

func TestDifferenceIsThatOfTheMetrics(t *testing.T) {
	for seed := range uint64(20) {
		a, b := draws(seed, 50+int(seed), 0.3, 0.5)
		d, err := Difference(a, b)
		if err != nil {
			t.Fatal(err)
		}
		x, y := a.Metrics(), b.Metrics()
		if math.Abs(d.AUC-(x.AUC-y.AUC)) > 1e-12 || math.Abs(d.MRR-(x.MRR-y.MRR)) > 1e-12 || d.Edges != len(a) {
			t.Errorf("seed %d: %+v of %+v and %+v", seed, d, x, y)
		}
		back, err := Difference(b, a)
		if err != nil || math.Abs(back.AUC+d.AUC) > 1e-12 || math.Abs(back.AUCStdErr-d.AUCStdErr) > 1e-12 ||
			math.Abs(back.MRR+d.MRR) > 1e-12 {
			t.Errorf("seed %d: %+v, the other way round %+v (%v)", seed, d, back, err)
		}
		if same, err := Difference(a, a); err != nil || same.AUC != 0 || same.AUCStdErr != 0 || same.MRRStdErr != 0 {
			t.Errorf("seed %d: %+v from itself (%v)", seed, same, err)
		}
	}
}

// Over repeated samples, the error is the spread of the difference; and it is below that of two separate samples.
func TestDifferenceStandardErrorCoversRepeats(t *testing.T) {
	const repeats, n = 300, 200
	var sum, squares, stated, apart float64
	for seed := range uint64(repeats) {
		a, b := draws(seed, n, 0.1, 0.3)
		d, err := Difference(a, b)
		if err != nil {
			t.Fatal(err)
		}
		sum, squares = sum+d.AUC, squares+d.AUC*d.AUC
		stated += d.AUCStdErr / repeats
		apart += math.Hypot(a.Metrics().AUCStdErr, b.Metrics().AUCStdErr) / repeats
	}
	spread := math.Sqrt((squares - sum*sum/repeats) / (repeats - 1))
	if stated < 0.8*spread || stated > 1.25*spread {
		t.Errorf("the stated error is %.5f, the spread %.5f", stated, spread)
	}
	if stated > 0.7*apart {
		t.Errorf("the stated error is %.5f, that of separate samples %.5f", stated, apart)
	}
}

func TestDifferenceOfOtherEdgesIsRefused(t *testing.T) {
	a, b := draws(1, 5, 0, 1)
	for name, other := range map[string]LinkScores{"fewer": b[1:], "others": append(b[1:5:5], b[0]), "none": nil} {
		if _, err := Difference(a, other); !errors.Is(err, ErrNotPaired) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Difference(nil, nil); !errors.Is(err, ErrNotPaired) {
		t.Errorf("nothing: %v", err)
	}
}

// An edge whose other end moves from rank 2 to rank 1 of ten gains 1/10 and 1/2; the second edge gains nothing.
func TestRankGain(t *testing.T) {
	a, b := LinkScores{{Rank: 1}, {Rank: 4}}, LinkScores{{Rank: 2}, {Rank: 4}}
	mean, stdErr := RankGain(a, b, 10)
	if math.Abs(mean-0.3) > 1e-12 || math.Abs(stdErr-0.3) > 1e-12 {
		t.Errorf("gain %g ± %g, want 0.3 ± 0.3", mean, stdErr)
	}
	if back, _ := RankGain(b, a, 10); math.Abs(back+mean) > 1e-12 {
		t.Errorf("the other way round %g", back)
	}
}
