package ingest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"giantstream/ingest/decode"
)

// TestTypesOfOtherWriters reads files of typed columns that pyarrow, DuckDB and pandas have written. What
// their rows mean is said in Python, in testdata/typed_files.py.
func TestTypesOfOtherWriters(t *testing.T) {
	if out, err := exec.Command("python3", "-c", "import pyarrow, duckdb, pandas").CombinedOutput(); err != nil {
		t.Skipf("python3 with pyarrow, duckdb and pandas is not here (pip install pyarrow duckdb pandas): %v: %.200s",
			err, out)
	}
	dir := t.TempDir()
	if out, err := exec.Command("python3", "-B", "testdata/typed_files.py", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wanted, err := filepath.Glob(filepath.Join(dir, "*.want"))
	if err != nil || len(wanted) < 100 {
		t.Fatalf("%d files, %v", len(wanted), err)
	}
	for _, name := range wanted {
		base := strings.TrimSuffix(name, ".want")
		t.Run(filepath.Base(base), func(t *testing.T) {
			files, err := filepath.Glob(base + ".[^w]*")
			if err != nil || len(files) != 1 {
				t.Fatalf("%q, %v", files, err)
			}
			data, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			m := decode.Mapping{Nodes: decode.NodeMapping{ID: "id", EventTime: "at",
				Text: []string{"text", "nested.a", "nested.m.k"}}}
			got, want := readFile(t, filepath.Base(files[0]), data, m), wantedRows(t, name)
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// wantedRows reads what typed_files.py says of a file.
func wantedRows(t *testing.T, name string) (want []string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var row *struct {
			ID, Text string
			At       *int64
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		switch {
		case row == nil:
			want = append(want, "dead letter")
		case row.At == nil: // the record's own time
			want = append(want, fmt.Sprintf("node %q at %d: %q", row.ID, now.UnixMicro(), row.Text))
		default:
			want = append(want, fmt.Sprintf("node %q at %d: %q", row.ID, *row.At, row.Text))
		}
	}
	return want
}
