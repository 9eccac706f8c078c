package fit

import (
	"errors"
	"os"
	"slices"
	"testing"

	"giantstream/train/internal/graphtest"
)

// A disk that fails during training is an error, never a worse encoder.
func TestUnreadableFeaturesFailTheTraining(t *testing.T) {
	g := graphtest.Topics(400, 8, 8, 1)
	for kind, broken := range map[string]func(Inputs) *spool{
		"linear": func(in Inputs) *spool { return in.Projected.spool },
		"bag":    func(in Inputs) *spool { return in.Features.spool },
	} {
		r := resources()
		r.MemoryLimit = 1
		training := cluster(t, fitTexts(t, g, 32, r), g, 16, r)
		training.Settings.Epochs = 1
		if err := broken(training.Inputs).file.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := Train(t.Context(), kind, training); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: got %v, want the error of the file", kind, err)
		}
	}
}

// The projection is fitted to texts that say something.
func TestSampleLeavesOutEmptyTexts(t *testing.T) {
	f := &Features{spool: newSpool(-1), cols: 3}
	for i := range 100 {
		var record []byte
		if i%2 == 0 { // feature 1, value i
			record = appendFloats(append(record, 1, 0, 0, 0), []float32{float32(i)})
		}
		if err := f.spool.append(record); err != nil {
			t.Fatal(err)
		}
	}
	for size, want := range map[int]int{10: 10, 50: 50, 99: 50} {
		x, err := f.sample(size, 7)
		if err != nil {
			t.Fatal(err)
		}
		if x.Rows != want || int(x.NNZ()) != want {
			t.Errorf("a sample of %d has %d rows with %d entries, want %d", size, x.Rows, x.NNZ(), want)
		}
		if !slices.IsSorted(x.Value) {
			t.Errorf("a sample of %d is not in the order of the nodes", size)
		}
	}
}
