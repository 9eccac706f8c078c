// Package milvuslite runs Milvus Lite for tests: the server of PyPI's packages milvus-lite and pymilvus, which answers
// Milvus's own gRPC interface.
package milvuslite

import (
	"cmp"
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"giantstream/internal/freeport"
)

// Start runs a server on a loopback port until the test ends, and returns its URL. It skips the test where neither
// python3 nor the Python that GIANTSTREAM_PYTHON names has the packages.
func Start(t testing.TB) string {
	t.Helper()
	python := ""
	for _, p := range []string{"python3", cmp.Or(os.Getenv("GIANTSTREAM_PYTHON"), "python3")} {
		find := exec.CommandContext(t.Context(), p, "-c", "import milvus_lite.cmdline")
		find.Dir = os.TempDir() // Python would take a folder of that name here for it
		if find.Run() == nil {
			python = p
			break
		}
	}
	if python == "" {
		t.Skip("no Python with Milvus Lite: python3 -m pip install milvus-lite pymilvus, and name that Python in " +
			"GIANTSTREAM_PYTHON unless it is python3")
	}
	addr, err := freeport.Addr(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(addr)
	// It is stopped below, in an orderly way, and not with the context.
	server := exec.CommandContext(context.WithoutCancel(t.Context()), python, "-c",
		"import sys; from milvus_lite.cmdline import main; sys.exit(main())", "server",
		"--data-dir", t.TempDir(), "--host", host, "--port", port)
	server.Dir = os.TempDir()
	var log strings.Builder
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill() // the data go anyway
		_ = server.Wait()
		if t.Failed() {
			const most = 4000
			t.Logf("the end of Milvus Lite's log:\n%s", log.String()[max(0, log.Len()-most):])
		}
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
		if err == nil {
			_ = c.Close()
			return "http://" + addr
		}
		if time.Now().After(deadline) {
			t.Fatalf("Milvus Lite does not answer: %v", err)
		}
	}
}
