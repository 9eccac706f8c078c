package numeric

import (
	"slices"
	"testing"
)

func TestNumbersDependOnSeedAndPlace(t *testing.T) {
	seen := map[uint64][]uint64{}
	for seed := range uint64(8) {
		for a := range uint64(8) {
			for b := range uint64(8) {
				s := NewRand(seed, a, b)
				v := s.Uint64()
				if other, ok := seen[v]; ok {
					t.Errorf("seed and place %v and %v give the same number", []uint64{seed, a, b}, other)
				}
				seen[v] = []uint64{seed, a, b}
				again := NewRand(seed, a, b)
				if again.Uint64() != v {
					t.Errorf("the number at %d, %d, %d changes", seed, a, b)
				}
			}
		}
	}
}

func TestIntNAndPermAreUniform(t *testing.T) {
	s := NewRand(1)
	var count [5]int
	for range 50_000 {
		count[s.IntN(5)]++
	}
	for v, c := range count {
		if c < 9_600 || c > 10_400 {
			t.Errorf("%d came %d times in 50,000", v, c)
		}
	}
	p := s.Perm(100)
	slices.Sort(p)
	for i, v := range p {
		if int(v) != i {
			t.Fatalf("not a permutation: %v", p)
		}
	}
}

// TestNumbersStay pins the generator: orders of epochs (docs/format/dataset.md)
// and splits are made with it, by other programs too.
func TestNumbersStay(t *testing.T) {
	s := NewRand(7, 3)
	if got, want := s.Uint64(), uint64(0xf4f4fdcc1c11896d); got != want {
		t.Errorf("first number of (7, 3) is %#x, want %#x", got, want)
	}
	if got, want := s.Perm(6), []int32{2, 1, 5, 3, 0, 4}; !slices.Equal(got, want) {
		t.Errorf("then a permutation %v, want %v", got, want)
	}
}
