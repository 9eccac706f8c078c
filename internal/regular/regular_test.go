//go:build unix

package regular_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"giantstream/internal/regular"
)

// TestOnlyRegularFilesOpen: nothing else opens, and no opening waits.
func TestOnlyRegularFilesOpen(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir) // the address of a socket is short
	l, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "zero")); err != nil {
		t.Fatal(err)
	}

	files := regular.DirFS(dir)
	for _, name := range []string{"file", "link"} {
		if b, err := fs.ReadFile(files, name); err != nil || string(b) != "x" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	for name, kind := range map[string]string{"pipe": "a pipe", "socket": "a socket", "zero": "a device",
		".": "a directory"} {
		_, err := files.Open(name)
		if !errors.Is(err, regular.ErrNotRegular) || !strings.Contains(err.Error(), kind) {
			t.Errorf("%s: %v, want %q", name, err, kind)
		}
	}
	if _, err := files.Open("nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
	if _, err := files.Open("../file"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("../file: %v", err)
	}
}
