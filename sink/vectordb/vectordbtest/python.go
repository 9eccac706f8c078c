package vectordbtest

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

// PythonServer runs a server that a Python package brings, on a loopback port until the test ends, and returns its
// address. args are those of the Python that has the module. It skips the test where neither python3 nor the Python
// that GIANTSTREAM_PYTHON names has it; install is what pip installs it by.
func PythonServer(t testing.TB, module, install string, args func(host, port, dir string) []string) (addr string) {
	t.Helper()
	python := ""
	for _, p := range []string{"python3", cmp.Or(os.Getenv("GIANTSTREAM_PYTHON"), "python3")} {
		find := exec.CommandContext(t.Context(), p, "-c", "import "+module)
		find.Dir = os.TempDir() // Python would take a folder of that name here for it
		if find.Run() == nil {
			python = p
			break
		}
	}
	if python == "" {
		t.Skipf("no Python has %s: python3 -m pip install %s, and name that Python in GIANTSTREAM_PYTHON unless it is "+
			"python3", module, install)
	}
	addr, err := freeport.Addr(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(addr)
	// It is stopped below, and not with the context.
	server := exec.CommandContext(context.WithoutCancel(t.Context()), python, args(host, port, t.TempDir())...)
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
			t.Logf("the end of the log of %s:\n%s", module, log.String()[max(0, log.Len()-most):])
		}
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
		if err == nil {
			_ = c.Close()
			return addr
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server of %s does not answer: %v", module, err)
		}
	}
}
