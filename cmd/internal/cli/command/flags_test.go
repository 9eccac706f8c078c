package command

import (
	"os"
	"path/filepath"
	"testing"

	"giantstream/cmd/internal/wiring"
	"giantstream/config"
)

// A store's own objects, the state and the broker's log lie in one directory, whatever its name has in it.
func TestOneDirectoryForEverything(t *testing.T) {
	for _, name := range []string{"plain", "z%41", "a b", "50%", "ü#?&", "z%2541"} {
		root := t.TempDir()
		for _, flag := range []string{filepath.Join(root, name), wiring.DirURL(filepath.Join(root, name))} {
			cfg := config.Local()
			if err := PlaceAt(&cfg, flag); err != nil {
				t.Fatal(err)
			}
			if want := filepath.Join(root, name, "local", "state"); cfg.StateDir != want {
				t.Errorf("%s: the state is in %s, want %s", flag, cfg.StateDir, want)
			}
			store, err := wiring.OpenStore(t.Context(), &cfg)
			if err != nil {
				t.Fatal(err)
			}
			if store.URL() != cfg.Store {
				t.Errorf("%s: the store says %s, the configuration %s", flag, store.URL(), cfg.Store)
			}
		}
		made, err := os.ReadDir(root)
		if err != nil || len(made) != 1 || made[0].Name() != name {
			t.Errorf("%q: made %v (%v)", name, made, err)
		}
	}
}
