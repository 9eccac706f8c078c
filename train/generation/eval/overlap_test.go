package eval

import (
	"math"
	"testing"
)

// Eight nodes on a circle. In the second space they are turned by a quarter, and one has moved to the other side.
func TestOverlapsOfACircle(t *testing.T) {
	point := func(turns float64) []float32 {
		return []float32{float32(math.Cos(2 * math.Pi * turns)), float32(math.Sin(2 * math.Pi * turns))}
	}
	var before, after, same []float32
	queries := []int32{0, 1, 2, 3, 4, 5, 6, 7}
	for i := range 8 {
		at := float64(i) / 8.1 // no two distances are equal
		before = append(before, point(at)...)
		after = append(after, point(at+0.25)...)
		same = append(same, point(at)...)
	}
	bucket := []uint8{0, 0, 1, 1, 1, 1, 1, 1}
	all, by := Overlaps(before, same, 2, queries, bucket, 2)
	if want := (Overlap{Kept: 1, NewOnOld: 1, OldOnNew: 1, Cosine: 1, Queries: 8}); math.Abs(all.Cosine-1) > 1e-6 ||
		all.Kept != want.Kept || all.NewOnOld != want.NewOnOld || all.OldOnNew != want.OldOnNew || all.Moved != 0 {
		t.Errorf("the same space: %+v, want %+v", all, want)
	}
	if by[0].Queries != 2 || by[1].Queries != 6 || by[2].Queries != 0 {
		t.Errorf("by bucket: %+v", by)
	}
	all, _ = Overlaps(before, after, 2, queries, bucket, 2)
	if all.Kept != 1 || all.Moved != 1 || math.Abs(all.Cosine) > 1e-6 || all.NewOnOld > 0.3 {
		t.Errorf("turned by a quarter: %+v", all)
	}
	clear(after[6:8]) // node 3 has no vector any more
	all, by = Overlaps(before, after, 2, queries, bucket, 2)
	if all.Queries != 7 || by[1].Queries != 5 || all.Kept == 1 {
		t.Errorf("without node 3: %+v, %+v", all, by)
	}
}
