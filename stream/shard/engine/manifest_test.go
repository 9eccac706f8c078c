package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"
)

// TestAManifestThatIsCutIsDamage: wherever it is cut, between two records, too. A note that a crash has torn, or of
// another manifest, says nothing.
func TestAManifestThatIsCutIsDamage(t *testing.T) {
	disk := vfs.NewMem()
	makeDatabase(t, disk)
	name, err := atomicfs.ReadMarker(disk, "db", "manifest")
	if err != nil {
		t.Fatal(err)
	}
	path := disk.PathJoin("db", name)
	whole := readFile(t, disk, path)
	if err := CheckManifest(disk, "db"); err != nil {
		t.Fatalf("a whole manifest of %d bytes: %v", len(whole), err)
	}
	for n := range whole {
		writeFile(t, disk, path, whole[:n])
		if err := CheckManifest(disk, "db"); !errors.Is(err, ErrDamaged) {
			t.Errorf("cut to %d of %d bytes: %v", n, len(whole), err)
		}
	}
	writeFile(t, disk, path, whole)
	note := disk.PathJoin("db", syncedName)
	for _, text := range []string{"", name, name + " ", "MANIFEST-999999 1000000\n", "\x00\x00\x00"} {
		writeFile(t, disk, note, []byte(text))
		if err := CheckManifest(disk, "db"); err != nil {
			t.Errorf("with the note %q: %v", text, err)
		}
	}
}

func makeDatabase(t *testing.T, disk vfs.FS) {
	t.Helper()
	guard := NewGuard(time.Minute)
	err := guard.Run(context.Background(), func(context.Context) error {
		cache := pebble.NewCache(1 << 20)
		defer cache.Unref()
		db, err := Open("db", NewFS(disk, guard), guard, cache, 1<<20, slog.New(slog.DiscardHandler))
		for i := 0; i < 5 && err == nil; i++ {
			if err = db.Set(fmt.Append(nil, "key ", i), []byte("value"), pebble.NoSync); err == nil {
				err = db.Flush()
			}
		}
		if err != nil {
			return err
		}
		return db.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, disk vfs.FS, path string) []byte {
	t.Helper()
	f, err := disk.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // test
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func writeFile(t *testing.T, disk vfs.FS, path string, data []byte) {
	t.Helper()
	f, err := disk.Create(path, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write(bytes.Clone(data)) // with the race detector, this file system changes what it is given
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}
