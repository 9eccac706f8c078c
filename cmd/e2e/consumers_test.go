package e2e_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// Others read what a run leaves without code of ours: pyarrow and DuckDB find the types of
// docs/format and the counts of generation.json.
func TestRunInPyarrowAndDuckDB(t *testing.T) {
	if out, err := exec.Command("python3", "-c", "import pyarrow, duckdb").CombinedOutput(); err != nil {
		t.Skipf("python3 with pyarrow and duckdb is not here (pip install pyarrow duckdb): %v: %.200s", err, out)
	}
	inputs, dir := t.TempDir(), t.TempDir()
	config := writeFile(t, filepath.Join(inputs, "pipeline.yaml"), smallConfig)
	a := newAuthor(5, 300)
	for _, h := range []history{a.beginning(), a.later()} {
		succeed(t, slices.Concat([]string{"run", "-c", config, "--store", dir, "--until-idle"}, h.write(t, t.TempDir()))...)
	}
	out, err := exec.Command("python3", filepath.Join(here, "testdata", "check_store.py"), dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
