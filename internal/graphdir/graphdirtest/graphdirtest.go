// Package graphdirtest finds the real graphs that some tests and benchmarks use.
package graphdirtest

import (
	"os"
	"path/filepath"
	"testing"

	"giantstream/internal/graphdir"
)

// Load reads a graph of the shared data folder: $GIANTSTREAM_DATA, or shared/data beside the
// repository. It skips the test where the folder is missing.
func Load(t testing.TB, name string) *graphdir.Graph {
	t.Helper()
	data := os.Getenv("GIANTSTREAM_DATA")
	for up := ".."; data == "" && len(up) < 24; up = filepath.Join("..", up) {
		if dir := filepath.Join(up, "shared", "data"); exists(dir) {
			data = dir
		}
	}
	dir := filepath.Join(data, name)
	if !exists(dir) {
		t.Skipf("the shared data folder has no %s here (set GIANTSTREAM_DATA to its path)", name)
	}
	g, err := graphdir.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
