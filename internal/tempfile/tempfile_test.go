package tempfile_test

import (
	"io"
	"os"
	"runtime"
	"testing"

	"giantstream/internal/tempfile"
)

func TestNothingIsLeft(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir) // Windows
	f, err := tempfile.Create("test-*")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("content"); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" {
		wantEmpty(t, dir) // so a process that is killed now leaves nothing
	}
	if got, err := io.ReadAll(io.NewSectionReader(f, 0, 100)); err != nil || string(got) != "content" {
		t.Errorf("reads %q (%v)", got, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	wantEmpty(t, dir)
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left (%v)", left, err)
	}
}
