package e2e_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Others read what a run leaves without code of ours: pyarrow and DuckDB find the types of
// docs/format and the counts of generation.json.
func TestRunInPyarrowAndDuckDB(t *testing.T) {
	t.Parallel()
	needsPyarrow(t)
	inputs, dir := t.TempDir(), t.TempDir()
	config := writeFile(t, filepath.Join(inputs, "pipeline.yaml"), smallConfig)
	a := newAuthor(5, 300)
	for _, h := range []history{a.beginning(), a.later()} {
		succeed(t, slices.Concat([]string{"run", "-c", config, "--store", dir, "--until-idle"}, h.write(t, t.TempDir()))...)
	}
	python(t, "check_store.py", dir)
}

// They find in exports what export.json says: as of an event time from the topics and from the log, with embeddings and
// without, and of the newest manifests.
func TestExportsInPyarrowAndDuckDB(t *testing.T) {
	t.Parallel()
	needsPyarrow(t)
	inputs, dir, into := t.TempDir(), t.TempDir(), t.TempDir()
	config := writeFile(t, filepath.Join(inputs, "pipeline.yaml"), smallConfig)
	a := newAuthor(6, 300)
	for _, h := range []history{a.beginning(), a.later()} {
		succeed(t, slices.Concat([]string{"run", "-c", config, "--store", dir, "--until-idle"}, h.write(t, t.TempDir()))...)
	}
	before := time.Unix(epoch+5000, 0).UTC().Format(time.RFC3339) // between the histories
	var exports []string
	for name, flags := range map[string][]string{
		"topics": {"--as-of", before, "--generation", "none"},
		"log":    {"--as-of", before, "--from", "log", "--generation", "none"},
		"after":  {"--as-of", "2030-01-01"},
		"cut":    {"--cut", filepath.Join(dir, "generations", "000001", "generation.json")},
	} {
		exports = append(exports, filepath.Join(into, name))
		succeed(t, slices.Concat([]string{"export", "-c", config, "--store", dir, "-o", filepath.Join(into, name)}, flags)...)
	}
	python(t, "check_export.py", exports...)
}

func needsPyarrow(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("python3", "-c", "import pyarrow, duckdb").CombinedOutput(); err != nil {
		t.Skipf("python3 with pyarrow and duckdb is not here (pip install pyarrow duckdb): %v: %.200s", err, out)
	}
}

// python runs a program of testdata.
func python(t *testing.T, program string, args ...string) {
	t.Helper()
	out, err := exec.Command("python3", append([]string{"-B", filepath.Join(here, "testdata", program)}, args...)...).
		CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
