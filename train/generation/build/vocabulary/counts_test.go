package vocabulary

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"giantstream/featurize/sparse"
	"giantstream/train/generation/build/sections"
)

func TestCountsAreReadAsWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var b []byte
	var got sparse.Vector
	for range 300 {
		cols := 1 + r.IntN(1<<(1+r.IntN(24)))
		var want sparse.Vector
		for j := r.IntN(cols); j < cols; j += 1 + r.IntN(1+cols/50) {
			n := 1
			if r.IntN(4) == 0 {
				n += r.IntN(1 << r.IntN(20))
			}
			want.Index, want.Value = append(want.Index, int32(j)), append(want.Value, float32(n))
		}
		b = appendCounts(b[:0], want)
		var err error
		if got, err = readCounts(b, cols, got); err != nil || !slices.Equal(got.Index, want.Index) ||
			!slices.Equal(got.Value, want.Value) {
			t.Fatalf("%d features of %d: %v, %v", len(want.Index), cols, got, err)
		}
		last := int(want.Index[len(want.Index)-1])
		if _, err := readCounts(b, last, got); !errors.Is(err, sections.ErrShort) {
			t.Fatalf("feature %d of %d: %v", last, last, err)
		}
	}
}

// Whatever bytes stand there, the features that are read are ascending ones of the vectorizer, or there is an error.
func FuzzReadCounts(f *testing.F) {
	f.Add([]byte{2, 3, 5}, 100)
	f.Add([]byte{0xff}, 100)
	f.Add([]byte{3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}, 100)
	f.Fuzz(func(t *testing.T, b []byte, cols int) {
		if cols < 1 || cols > 1<<31-1 {
			return
		}
		v, err := readCounts(b, cols, sparse.Vector{})
		if err == nil && (len(v.Index) != len(v.Value) || !slices.IsSorted(v.Index) ||
			len(v.Index) > 0 && (v.Index[0] < 0 || int(v.Index[len(v.Index)-1]) >= cols)) {
			t.Errorf("%v of %d features", v, cols)
		}
	})
}
