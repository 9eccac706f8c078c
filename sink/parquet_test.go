package sink_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"giantstream/sink/dirstore"
	"giantstream/sink/embedding"
	"giantstream/sink/rows"
	"giantstream/sink/rows/rowstest"
)

// Others read our Parquet files without code of ours: pyarrow and DuckDB, with the types and counts
// of docs/format.
func TestParquetInPyarrowAndDuckDB(t *testing.T) {
	if out, err := exec.Command("python3", "-c", "import pyarrow, duckdb").CombinedOutput(); err != nil {
		t.Skipf("python3 with pyarrow and duckdb is not here (pip install pyarrow duckdb): %v: %.200s", err, out)
	}
	dir := t.TempDir()
	s, err := dirstore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := []rows.Row{
		{NodeID: "a", Text: "red shoe", Class: "shoes", Labels: []string{"b", "c"},
			FeatureIndices: []int32{1, 7}, FeatureValues: []float32{0.5, 0.25},
			Targets: [][]int32{{0}, {1, 3}, {2, 6, 9}}, TargetCounts: [][]int32{{2}, {1, 1}, {1, 2, 1}},
			Generation: 3, EventTime: 1_700_000_000_000_001,
			LinkEnds: []string{"b"}, LinkWeights: []float32{2.5}, LinkTimes: []int64{1_700_000_000_000_002},
			LinkKinds: []string{"kind"}},
		{NodeID: "b", Text: "naïve ☃", Labels: []string{"a"}, Targets: [][]int32{{0}, nil, {5}},
			TargetCounts: [][]int32{{1}, nil, {1}}},
		{NodeID: "c", Deleted: true},
	}
	for i := range 5000 {
		all = append(all,
			rows.Row{NodeID: fmt.Sprintf("n%06d", i), Targets: [][]int32{{int32(i % 4)}, {int32(i % 16), 17}}})
	}
	rowsInfo := rowstest.Put(t, s, "rows.parquet", all)
	embInfo, err := embedding.WriteParquet(t.Context(), s, "embeddings.parquet", embedding.Float32,
		func(yield func(embedding.Record, error) bool) {
			_ = yield(embedding.Record{NodeID: "a", Vector: []float32{0.5, -1, 0.25, 0}, Generation: 3, Shard: 2,
				Seq: 7}, nil) &&
				yield(embedding.Record{NodeID: "b", Vector: []float32{1, 2, 3, 4}, Generation: 3}, nil)
		})
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("python3", "testdata/check_parquet.py",
		filepath.Join(dir, "rows.parquet"), strconv.FormatInt(rowsInfo.Rows, 10),
		filepath.Join(dir, "embeddings.parquet"), strconv.FormatInt(embInfo.Rows, 10)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
