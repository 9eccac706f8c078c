package dataset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
)

// write stores a training set of the given parts of numbered rows.
func write(t *testing.T, sizes ...int) sink.Store {
	t.Helper()
	store := new(memstore.Store)
	n := 0
	for part, size := range sizes {
		var list []rows.Row
		for range size {
			list = append(list, rows.Row{
				NodeID: fmt.Sprintf("n%04d", n), Text: "text", Labels: []string{"a", "b"},
				Targets: [][]int32{{0}, {1, 3}}, TargetCounts: [][]int32{{2}, {1, 1}}, Generation: 1,
			})
			n++
		}
		if _, err := rows.WriteSlice(t.Context(), store, fmt.Sprintf("g/dataset/part-%05d.parquet", part), list); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

func open(t *testing.T, store sink.Store) *Dataset {
	t.Helper()
	d, err := Open(t.Context(), store, "g/dataset")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func ids(t *testing.T, d *Dataset, epoch int) []string {
	t.Helper()
	var list []string
	for row, err := range d.Epoch(t.Context(), 7, epoch) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, row.NodeID)
	}
	return list
}

func TestAllKeepsOrderAndColumns(t *testing.T) {
	d := open(t, write(t, 3, 2))
	var got []string
	for row, err := range d.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if row.Text != "text" || !slices.Equal(row.Targets[1], []int32{1, 3}) {
			t.Errorf("row %+v", row)
		}
		got = append(got, row.NodeID)
	}
	if want := "n0000 n0001 n0002 n0003 n0004"; strings.Join(got, " ") != want {
		t.Errorf("rows %v, want %s", got, want)
	}
	d.Columns = []string{rows.ColNodeID}
	for row, err := range d.All(t.Context()) {
		if err != nil || row.Text != "" || row.NodeID == "" {
			t.Errorf("node_id alone: %+v, %v", row, err)
		}
	}
}

func TestEpochIsAReproduciblePermutation(t *testing.T) {
	for _, c := range []struct {
		buffer int
		sizes  []int
	}{{4, []int{30, 0, 25}}, {1, []int{5}}, {1000, []int{30, 25}}} {
		d := open(t, write(t, c.sizes...))
		d.Buffer = c.buffer
		first, again, second := ids(t, d, 0), ids(t, d, 0), ids(t, d, 1)
		if !slices.Equal(first, again) {
			t.Errorf("buffer %d: the same epoch comes in another order", c.buffer)
		}
		if c.buffer > 1 && slices.Equal(first, second) {
			t.Errorf("buffer %d: two epochs come in the same order", c.buffer)
		}
		slices.Sort(first)
		slices.Sort(second)
		want := 0
		for _, s := range c.sizes {
			want += s
		}
		if !slices.Equal(first, second) || len(first) != want || len(slices.Compact(first)) != want {
			t.Errorf("buffer %d: %d rows, want each of %d once", c.buffer, len(first), want)
		}
	}
}

func TestEpochMayBeLeftEarly(t *testing.T) {
	d := open(t, write(t, 20))
	d.Buffer = 2
	whole := ids(t, d, 3)
	seen := 0
	for row, err := range d.Epoch(t.Context(), 7, 3) {
		if err != nil || row.NodeID != whole[seen] {
			t.Fatalf("row %d is %s, want %s (%v)", seen, row.NodeID, whole[seen], err)
		}
		if seen++; seen == 5 {
			break
		}
	}
}

func TestErrorsAreReported(t *testing.T) {
	if _, err := Open(t.Context(), new(memstore.Store), "g/dataset"); !errors.Is(err, ErrEmpty) {
		t.Errorf("no parts: got %v, want ErrEmpty", err)
	}
	store := write(t, 3)
	if err := store.Put(t.Context(), "g/dataset/part-00001.parquet", strings.NewReader("nonsense"), 8); err != nil {
		t.Fatal(err)
	}
	var failed error
	for _, err := range open(t, store).Epoch(t.Context(), 1, 0) {
		if err != nil {
			failed = err
		}
	}
	if failed == nil || !strings.Contains(failed.Error(), "part-00001") {
		t.Errorf("a part that is no Parquet: got %v, want an error that names it", failed)
	}
}
