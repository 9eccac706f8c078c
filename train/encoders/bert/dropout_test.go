package bert

import (
	"math"
	"slices"
	"testing"

	"giantstream/train/encoders/bert/compute"
)

// TestGradientsUnderDropout checks the gradient of every array, with what is
// dropped held fixed, against the difference that a step along it makes.
func TestGradientsUnderDropout(t *testing.T) {
	texts := many(t, 12)
	seeds := seedsOf(len(texts), 3)
	for _, pooling := range []compute.Pooling{compute.First, compute.Mean} {
		u := tuner(t, tiny(), TuneOptions{Pooling: pooling, Dropout: 0.2, DropTokens: 0.2})
		slope := make([]float32, len(texts)*u.Dim())
		for i := range slope {
			slope[i] = float32(math.Sin(float64(i)))
		}
		out := backwardSeeded(t, u, texts, seeds, slope)
		loss := func() (sum float64) {
			if err := u.Forward(texts, seeds, out); err != nil {
				t.Fatal(err)
			}
			for i, v := range out {
				sum += float64(v) * float64(slope[i])
			}
			return sum
		}
		for i, p := range u.weights {
			w, g := numbersOf(t, u, *p.buffer), numbersOf(t, u, *u.gradients[i].buffer)
			var squares float64
			for _, v := range g {
				squares += float64(v) * float64(v)
			}
			norm := math.Sqrt(squares)
			const far = 5e-3 // of the step
			along := func(step float64) float64 {
				moved := slices.Clone(w)
				for k := range moved {
					moved[k] += float32(step / norm * float64(g[k]))
				}
				u.backend.Write(*p.buffer, moved)
				defer u.backend.Write(*p.buffer, w)
				return loss()
			}
			if got := (along(far) - along(-far)) / (2 * far); math.Abs(got-norm) > 0.02*norm {
				t.Errorf("pooling %d, %s: a step along the gradient changes the loss by %.5g for each unit, want %.5g",
					pooling, p.name, got, norm)
			}
		}
	}
}

func numbersOf(t *testing.T, u *Tuner, b compute.Buffer) []float32 {
	t.Helper()
	x := make([]float32, b.Len())
	if err := u.backend.Read(x, b); err != nil {
		t.Fatal(err)
	}
	return x
}

func TestWhatIsDroppedDependsOnTheSeedAlone(t *testing.T) {
	texts := many(t, 30)
	for name, o := range map[string]TuneOptions{
		"dropout": {Pooling: compute.Mean, Dropout: 0.1}, "tokens": {Pooling: compute.Mean, DropTokens: 0.5},
	} {
		u := tuner(t, tiny(), o)
		d := u.Dim()
		vectors := func(texts []string, seeds []uint64) []float32 {
			out := make([]float32, len(texts)*d)
			if err := u.Forward(texts, seeds, out); err != nil {
				t.Fatal(err)
			}
			return out
		}
		seeds := seedsOf(len(texts), 1)
		got := vectors(texts, seeds)
		for _, i := range []int{0, 7, 29} {
			if alone := vectors(texts[i:i+1], seeds[i:i+1]); !slices.Equal(alone, got[i*d:(i+1)*d]) {
				t.Errorf("%s: text %d has another vector alone", name, i)
			}
		}
		if slices.Equal(vectors(texts, seedsOf(len(texts), 2)), got) || slices.Equal(vectors(texts, nil), got) {
			t.Errorf("%s: other seeds, or none, give the same vectors", name)
		}
	}
}

func TestThinKeepsTheEndsAndPlaces(t *testing.T) {
	b := compute.Batch{Start: []int32{0, 2, 102, 105}, Seeds: []uint64{1, 2, 3}}
	for i := range 105 {
		b.IDs = append(b.IDs, int32(i))
	}
	start := slices.Clone(b.Start)
	thin(&b, 0.6)
	for i := range b.Texts() {
		ids, places := b.IDs[b.Start[i]:b.Start[i+1]], b.Places[b.Start[i]:b.Start[i+1]]
		for k, id := range ids {
			if id != start[i]+places[k] {
				t.Errorf("text %d: token %d is said to be at place %d", i, id-start[i], places[k])
			}
		}
		if !slices.IsSorted(ids) || ids[0] != start[i] || ids[len(ids)-1] != start[i+1]-1 {
			t.Errorf("text %d: tokens %v of %d to %d", i, ids, start[i], start[i+1]-1)
		}
	}
	if n := b.Start[2] - b.Start[1]; n < 25 || n > 57 {
		t.Errorf("%d of 100 tokens stay, want about 41", n)
	}
}
