// Package milvuslite runs Milvus Lite for tests: the server of PyPI's packages milvus-lite and pymilvus, which answers
// Milvus's own gRPC interface.
package milvuslite

import (
	"testing"

	"giantstream/sink/vectordb/vectordbtest"
)

// Start runs a server until the test ends, and returns its URL. It skips the test where no Python has the packages.
func Start(t testing.TB) string {
	t.Helper()
	return "http://" + vectordbtest.PythonServer(t, "milvus_lite.cmdline", "milvus-lite pymilvus",
		func(host, port, dir string) []string {
			return []string{"-c", "import sys; from milvus_lite.cmdline import main; sys.exit(main())", "server",
				"--data-dir", dir, "--host", host, "--port", port}
		})
}
