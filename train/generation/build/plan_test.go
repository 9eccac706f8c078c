package build

import "testing"

// A PIFA task reads many projected texts, so there are as many as the memory asks for, and enough for several machines.
func TestRangesFollowTheMemory(t *testing.T) {
	for _, c := range []struct {
		rows   int64
		memory int64
		at     int // a time
		want   int
	}{
		{1000, 0, 0, 1},
		{1 << 20, 2 << 30, 1, 8},
		{111e6, 2 << 30, 1, 256},
		{111e6, 16 << 30, 0, 16},
		{111e6, 16 << 30, 4, 64},
		{111e6, 16 << 30, 8, 256},
		{111e6, 64 << 30, 1, 8},
		{111e6, 64 << 30, 9, 32},
	} {
		p, err := NewPlan(1, 1, Size{Rows: c.rows, Dim: 256, Memory: c.memory, AtATime: c.at}, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if p.Ranges != c.want || p.Ranges > p.Partitions {
			t.Errorf("%d rows, %d MiB for %d tasks: %d ranges of %d partitions, want %d", c.rows, c.memory>>20, c.at,
				p.Ranges, p.Partitions, c.want)
		}
	}
}
