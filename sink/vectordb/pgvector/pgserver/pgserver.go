// Package pgserver runs PostgreSQL with pgvector for tests: the server of PyPI's package pgserver, which brings both in
// its wheel.
package pgserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"giantstream/internal/freeport"
)

// Server is a running server.
type Server struct {
	// Programs is the folder of psql and the like.
	Programs string

	addr string
	made atomic.Int32
}

// nobody runs the server where the tests run as root, which PostgreSQL refuses.
const nobody = 65534

// Start runs a server on a loopback port until the test ends. It skips the test where Python, which
// GIANTSTREAM_PYTHON may name, has no package pgserver.
func Start(t testing.TB) *Server {
	t.Helper()
	python := cmp.Or(os.Getenv("GIANTSTREAM_PYTHON"), "python3")
	find := exec.CommandContext(t.Context(), python, "-c",
		`import importlib.util; print(*importlib.util.find_spec("pgserver").submodule_search_locations)`)
	find.Dir = os.TempDir() // Python would take a folder of that name here for it
	out, err := find.Output()
	if err != nil {
		t.Skipf("%s has no package pgserver, which brings PostgreSQL with pgvector: python3 -m pip install pgserver, "+
			"and name that Python in GIANTSTREAM_PYTHON", python)
	}
	install := filepath.Join(strings.TrimSpace(string(out)), "pginstall")
	root, err := os.MkdirTemp("", "pgserver") // not TempDir, which nobody else may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	attributes := &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		if install, err = lend(install, root); err != nil {
			t.Fatal(err)
		}
		attributes.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	s := &Server{Programs: filepath.Join(install, "bin")}
	if s.addr, err = freeport.Addr(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(s.addr)
	data := filepath.Join(root, "data")
	// Neither command sees the environment: PG* variables would change what they do.
	initdb := exec.CommandContext(t.Context(), filepath.Join(install, "bin", "initdb"), "--pgdata", data,
		"--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale", "--no-sync")
	initdb.Env, initdb.Dir, initdb.SysProcAttr = []string{"PATH=/usr/bin:/bin"}, root, attributes
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	var log strings.Builder
	// It is stopped below, in an orderly way, and not with the context.
	server := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(install, "bin", "postgres"),
		"-D", data, "-p", port, "-k", root, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off",
		"-c", "shared_buffers=64MB", "-c", "wal_level=logical")
	server.Env, server.Dir, server.SysProcAttr = initdb.Env, root, attributes
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGQUIT) // at once; the data go anyway
		_ = server.Wait()
		if t.Failed() {
			const most = 4000
			t.Logf("the end of PostgreSQL's log:\n%s", log.String()[max(0, log.Len()-most):])
		}
	})
	if err := s.await(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// lend copies what the server needs below root to where nobody may read it: a virtual environment of root's often is
// not.
func lend(install, root string) (string, error) {
	to := filepath.Join(root, "pgserver", "pginstall")
	for _, dir := range []string{"bin", "lib", "share"} {
		if err := os.CopyFS(filepath.Join(to, dir), os.DirFS(filepath.Join(install, dir))); err != nil {
			return "", err
		}
	}
	// Libraries that the wheel has bundled are found relative to the programs.
	const libs = "pgserver.libs"
	bundled := filepath.Join(install, "..", "..", libs)
	if err := os.CopyFS(filepath.Join(root, libs), os.DirFS(bundled)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if err := os.Chmod(root, 0o755); err != nil { //nolint:gosec // nobody has to enter it
		return "", err
	}
	if err := os.Mkdir(filepath.Join(root, "data"), 0o700); err != nil {
		return "", err
	}
	return to, errors.Join(os.Chown(filepath.Join(root, "data"), nobody, nobody), os.Chown(root, nobody, nobody))
}

// await returns when the server answers.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		c, err := pgx.Connect(ctx, s.url("postgres"))
		if err == nil {
			return c.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL does not answer: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *Server) url(database string) string {
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable", s.addr, database)
}

// Addr returns host:port.
func (s *Server) Addr() string { return s.addr }

// Database makes an empty database and returns its URL.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	c, err := pgx.Connect(t.Context(), s.url("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.WithoutCancel(t.Context())) }()
	name := fmt.Sprintf("test%d", s.made.Add(1))
	if _, err := c.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return s.url(name)
}
