package dataset

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"giantstream/sink"
	"giantstream/sink/dirstore"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
)

// write stores a training set of the given parts of numbered rows, four rows
// to a row group.
func write(t *testing.T, sizes ...int) sink.Store {
	t.Helper()
	store := new(memstore.Store)
	writeTo(t, store, sizes...)
	return store
}

func writeTo(t *testing.T, store sink.Store, sizes ...int) {
	t.Helper()
	n := 0
	for part, size := range sizes {
		_, err := rows.WriteWith(t.Context(), store, fmt.Sprintf("g/dataset/part-%05d.parquet", part), rows.WriteOptions{GroupBytes: 4 * 80},
			func(yield func(rows.Row, error) bool) {
				for range size {
					row := rows.Row{NodeID: fmt.Sprintf("n%04d", n), Text: "text", Labels: []string{"a", "b"},
						Targets: [][]int32{{0}, {1, 3}}, TargetCounts: [][]int32{{2}, {1, 1}}, Generation: 1}
					n++
					if !yield(row, nil) {
						return
					}
				}
			})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func open(t *testing.T, store sink.Store, window int) *Dataset {
	t.Helper()
	d, err := Open(t.Context(), store, "g/dataset")
	if err != nil {
		t.Fatal(err)
	}
	d.Window = window
	return d
}

const seed = 7

func ids(t *testing.T, d *Dataset, epoch int, skip int64) []string {
	t.Helper()
	var list []string
	for row, err := range d.Epoch(t.Context(), seed, epoch, skip) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, row.NodeID)
	}
	return list
}

func TestAllKeepsOrderAndColumns(t *testing.T) {
	d := open(t, write(t, 3, 2), 1)
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
		window int
		sizes  []int
	}{{1, []int{30, 0, 25}}, {3, []int{30, 25}}, {1, []int{3}}, {1000, []int{30, 25}}} {
		d := open(t, write(t, c.sizes...), c.window)
		first, again, second := ids(t, d, 0, 0), ids(t, d, 0, 0), ids(t, d, 1, 0)
		if !slices.Equal(first, again) {
			t.Errorf("window %d: the same epoch comes in another order", c.window)
		}
		if slices.Equal(first, second) || slices.IsSorted(first) {
			t.Errorf("window %d of %v: epochs %v and %v are not shuffled", c.window, c.sizes, first, second)
		}
		slices.Sort(first)
		slices.Sort(second)
		want := 0
		for _, s := range c.sizes {
			want += s
		}
		if !slices.Equal(first, second) || len(first) != want || len(slices.Compact(first)) != want || d.Rows() != int64(want) {
			t.Errorf("window %d: %d rows, want each of %d once", c.window, len(first), want)
		}
	}
}

// A trainer that goes on from any position sees the rest of the epoch.
func TestEpochResumesAtAnyPosition(t *testing.T) {
	d := open(t, write(t, 13, 9), 2)
	whole := ids(t, d, 3, 0)
	for skip := range len(whole) + 2 {
		if got := ids(t, d, 3, int64(skip)); !slices.Equal(got, whole[min(skip, len(whole)):]) {
			t.Errorf("from position %d: %v, want %v", skip, got, whole[min(skip, len(whole)):])
		}
	}
}

// Resuming reads no row group of the windows before.
func TestResumeReadsWhatIsLeft(t *testing.T) {
	store := &counting{Store: write(t, 40, 40)}
	d := open(t, store, 2)
	store.opened.Store(0)
	if n := len(ids(t, d, 0, 72)); n != 8 {
		t.Fatalf("%d rows from position 72 of 80, want 8", n)
	}
	if got := store.opened.Load(); got != 2 {
		t.Errorf("%d row groups read for the last window of 2", got)
	}
}

type counting struct {
	sink.Store
	opened atomic.Int64
}

func (c *counting) Open(ctx context.Context, key string) (sink.Object, error) {
	c.opened.Add(1)
	return c.Store.Open(ctx, key)
}

func TestEpochMayBeLeftEarly(t *testing.T) {
	d := open(t, write(t, 20), 1)
	whole := ids(t, d, 3, 0)
	seen := 0
	for row, err := range d.Epoch(t.Context(), seed, 3, 0) {
		if err != nil || row.NodeID != whole[seen] {
			t.Fatalf("row %d is %s, want %s (%v)", seen, row.NodeID, whole[seen], err)
		}
		if seen++; seen == 5 {
			break
		}
	}
}

// Batches are the same rows for any number of trainers, which may change
// between steps.
func TestBatchesAreIndependentOfTheNumberOfTrainers(t *testing.T) {
	d := open(t, write(t, 31, 22), 3)
	const batch = 12
	whole := ids(t, d, 5, 0)
	for _, worlds := range [][]int{{1, 1, 1, 1}, {2, 2, 2, 2}, {3, 1, 12, 4}, {6, 2, 1, 3}} {
		for step, world := range worlds {
			var got []string
			for rank := range world {
				share := take(t, d, 5, Share{Batch: batch, Rank: rank, World: world, Step: int64(step)})
				if len(share) != batch/world {
					t.Fatalf("rank %d of %d has %d rows of a batch of %d", rank, world, len(share), batch)
				}
				got = append(got, share...)
			}
			if want := whole[step*batch : (step+1)*batch]; !slices.Equal(got, want) {
				t.Errorf("step %d with %d trainers: %v, want %v", step, world, got, want)
			}
		}
	}
	if n := d.Steps(batch); n != 4 {
		t.Errorf("%d steps of %d in 53 rows, want 4", n, batch)
	}
	if rest := take(t, d, 5, Share{Batch: batch, World: 1, Step: 4}); rest != nil {
		t.Errorf("after the last step: %v", rest)
	}
}

// take returns the ids of the first batch.
func take(t *testing.T, d *Dataset, epoch int, s Share) (list []string) {
	t.Helper()
	for batch, err := range d.Batches(t.Context(), seed, epoch, s) {
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range batch {
			list = append(list, row.NodeID)
		}
		break
	}
	return list
}

func TestEveryBatchComesOnce(t *testing.T) {
	d := open(t, write(t, 31, 22), 3)
	var got []string
	for batch, err := range d.Batches(t.Context(), seed, 0, Share{Batch: 10, World: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range batch {
			got = append(got, row.NodeID)
		}
	}
	if want := ids(t, d, 0, 0)[:50]; !slices.Equal(got, want) {
		t.Errorf("all batches: %v, want %v", got, want)
	}
}

func TestSharesThatDoNotWorkOut(t *testing.T) {
	d := open(t, write(t, 20), 1)
	for name, s := range map[string]Share{
		"no trainers":        {Batch: 4},
		"rank beyond world":  {Batch: 4, Rank: 2, World: 2},
		"batch not shared":   {Batch: 5, World: 2},
		"batch too large":    {Batch: 21, World: 1},
		"step before 0":      {Batch: 4, World: 1, Step: -1},
		"batch of nothing":   {World: 1},
		"rank before 0":      {Batch: 4, Rank: -1, World: 2},
		"world before 0":     {Batch: 4, World: -1},
		"batch of less than": {Batch: -2, World: 1},
	} {
		for _, err := range d.Batches(t.Context(), seed, 0, s) {
			if !errors.Is(err, ErrShare) {
				t.Errorf("%s: got %v, want ErrShare", name, err)
			}
		}
	}
}

func TestErrorsAreReported(t *testing.T) {
	if _, err := Open(t.Context(), new(memstore.Store), "g/dataset"); !errors.Is(err, ErrEmpty) {
		t.Errorf("no parts: got %v, want ErrEmpty", err)
	}
	store := write(t, 3, 3)
	d := open(t, store, 1)
	nonsense := func() {
		if err := store.Put(t.Context(), "g/dataset/part-00001.parquet", strings.NewReader("nonsense"), 8); err != nil {
			t.Fatal(err)
		}
	}
	nonsense()
	var failed error
	for _, err := range d.Epoch(t.Context(), 1, 0, 0) {
		if err != nil {
			failed = err
		}
	}
	if failed == nil || !strings.Contains(failed.Error(), "part-00001") {
		t.Errorf("a part that is no Parquet: got %v, want an error that names it", failed)
	}
	if _, err := Open(t.Context(), store, "g/dataset"); err == nil || !strings.Contains(err.Error(), "part-00001") {
		t.Errorf("opened with a part that is no Parquet: %v, want an error that names it", err)
	}
}

// docs/format/dataset.md is enough to do the same in another language.
func TestPythonReadsInTheSameOrder(t *testing.T) {
	if out, err := exec.Command("python3", "-c", "import pyarrow").CombinedOutput(); err != nil {
		t.Skipf("python3 with pyarrow is not here (pip install pyarrow): %v: %.200s", err, out)
	}
	dir := t.TempDir()
	store, err := dirstore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	writeTo(t, store, 30, 0, 25, 7)
	d := open(t, store, 3)
	if err := store.Put(t.Context(), "g/generation.json", strings.NewReader(`{"status":"ready"}`), 18); err != nil {
		t.Fatal(err)
	}
	for epoch := range 3 {
		out, err := exec.Command("python3", "../../examples/pytorch/dataset.py", filepath.Join(dir, "g"), fmt.Sprint(seed), fmt.Sprint(epoch), "3").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if want := ids(t, d, epoch, 0); !slices.Equal(strings.Fields(string(out)), want) {
			t.Errorf("epoch %d: Python has %s, want %v", epoch, out, want)
		}
	}
}
