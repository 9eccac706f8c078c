package staged

import "testing"

// A PIFA task reads all projected texts, so there are as many as the memory asks for, and enough for several machines.
func TestRangesFollowTheMemory(t *testing.T) {
	for _, c := range []struct {
		rows   int64
		memory int64
		want   int
	}{
		{1000, 0, 1},
		{1 << 20, 2 << 30, 8},
		{111e6, 2 << 30, 256},
		{111e6, 16 << 30, 32},
		{111e6, 64 << 30, 8},
	} {
		p, err := NewPlan(1, 1, Size{Rows: c.rows, Dim: 256, Memory: c.memory}, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if p.Ranges != c.want || p.Ranges > p.Partitions {
			t.Errorf("%d rows, %d MiB: %d ranges of %d partitions, want %d", c.rows, c.memory>>20, p.Ranges, p.Partitions,
				c.want)
		}
	}
}
