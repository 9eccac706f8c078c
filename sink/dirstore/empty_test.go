package dirstore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"giantstream/sink"
	"giantstream/sink/dirstore"
)

// Directories of removed objects go with them; the root and what is still used stay.
func TestEmptyDirectoriesGo(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	s, err := dirstore.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{"generations/000001/encoder/bert/vocab.txt", "generations/000001/tree", "generations/000002/tree"}
	for _, key := range keys {
		if err := sink.PutBytes(t.Context(), s, key, nil); err != nil {
			t.Fatal(err)
		}
	}
	for i, left := range []string{"000001", "000002", ""} {
		if err := s.Delete(t.Context(), keys[i]); err != nil {
			t.Fatal(err)
		}
		dirs, err := os.ReadDir(filepath.Join(root, "generations"))
		if left == "" && !os.IsNotExist(err) || left != "" && (err != nil || dirs[0].Name() != left) {
			t.Errorf("after %s: %v (%v)", keys[i], dirs, err)
		}
	}
	if _, err := os.Stat(root); err != nil {
		t.Error(err)
	}
}

// Writers and removers of one directory do not disturb each other.
func TestDirectoriesComeAndGo(t *testing.T) {
	s, err := dirstore.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			key := fmt.Sprintf("a/b/c/%d", w)
			for range 200 {
				if err := sink.PutBytes(t.Context(), s, key, []byte("x")); err != nil {
					t.Error(err)
					return
				}
				if data, err := sink.ReadAll(t.Context(), s, key); err != nil || string(data) != "x" {
					t.Errorf("%q, %v", data, err)
				}
				if err := s.Delete(t.Context(), key); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
