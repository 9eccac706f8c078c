// Package program builds giantstream for tests that run it as a process of its own.
package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Test builds the program, has binary name it, and runs the tests of m. It returns their exit code; call it in
// TestMain.
func Test(m *testing.M, binary *string) int {
	code, err := buildAndTest(m, binary)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func buildAndTest(m *testing.M, binary *string) (code int, err error) {
	dir, err := os.MkdirTemp("", "giantstream-test-*")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	*binary = filepath.Join(dir, "giantstream")
	// In its own module: users get the versions in that one's go.mod, not those that the tests require.
	ctx := context.Background()
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "giantstream").Output()
	if err != nil {
		return 1, fmt.Errorf("go list: %w", err)
	}
	// Without tables for debuggers it links in half the time.
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-w", "-o", *binary, "./cmd/giantstream")
	build.Dir = strings.TrimSpace(string(root))
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return m.Run(), nil
}
