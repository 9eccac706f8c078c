package dirstore_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"giantstream/sink"
	"giantstream/sink/dirstore"
	"giantstream/sink/storetest"
)

func open(t *testing.T) *dirstore.Store {
	t.Helper()
	s, err := dirstore.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) sink.Store { return open(t) })
}

func TestListIgnoresWhatIsNoObject(t *testing.T) {
	dir := t.TempDir()
	s, err := dirstore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.PutBytes(t.Context(), s, "a/x", []byte("data")); err != nil {
		t.Fatal(err)
	}
	// A temporary file that a crash left, and a stranger's file.
	for _, name := range []string{"a/~123.tmp", "a/copy of x", "~1.tmp"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("torn"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var keys []string
	for info, err := range s.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	if !slices.Equal(keys, []string{"a/x"}) {
		t.Errorf("listed %v, want a/x alone", keys)
	}
}

func TestNoTemporaryFilesStay(t *testing.T) {
	dir := t.TempDir()
	s, err := dirstore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{"1", "2"} {
		_ = s.Create(t.Context(), "x", []byte(data)) // the second fails
		if err := s.Put(t.Context(), "y", strings.NewReader(data), 1); err != nil {
			t.Fatal(err)
		}
		_ = s.Put(t.Context(), "z", strings.NewReader(data), 99) // too short
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, []string{"x", "y"}) {
		t.Errorf("the directory holds %v, want x and y", names)
	}
}

func TestKeyBelowAnObject(t *testing.T) {
	s := open(t)
	if err := sink.PutBytes(t.Context(), s, "a", nil); err != nil {
		t.Fatal(err)
	}
	err := sink.PutBytes(t.Context(), s, "a/b", nil)
	if err == nil || !strings.Contains(err.Error(), "is an object") {
		t.Errorf("got %v, want an error that names the object in the way", err)
	}
}
