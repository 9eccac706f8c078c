// Package qdrantedge runs Qdrant's engine for tests: that of PyPI's package qdrant-edge-py, behind those requests of
// Qdrant's interface that the package qdrant makes.
package qdrantedge

import (
	_ "embed"
	"testing"

	"giantstream/sink/vectordb/vectordbtest"
)

//go:embed server.py
var program string

// Start runs a server until the test ends, and returns its URL. It skips the test where no Python has the package.
func Start(t testing.TB) string {
	t.Helper()
	return "http://" + vectordbtest.PythonServer(t, "qdrant_edge", "qdrant-edge-py",
		func(host, port, dir string) []string { return []string{"-c", program, host, port, dir} })
}
