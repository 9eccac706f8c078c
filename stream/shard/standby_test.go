package shard

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A restore takes the files of the newest checkpoint that are on the disk already, and what is missing or damaged
// from the store.
func TestRestoreFromStandby(t *testing.T) {
	write := func(t *testing.T, disk vfs.FS, name string, data []byte) {
		t.Helper()
		f, err := disk.Create(name, vfs.WriteCategoryUnspecified)
		if err == nil {
			_, err = f.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name   string
		damage func(t *testing.T, disk vfs.FS, names []string)
		opened func(files int64) int64 // how many files come from the store
	}{
		{"whole", func(*testing.T, vfs.FS, []string) {}, func(int64) int64 { return 0 }},
		{"one gone", func(t *testing.T, disk vfs.FS, names []string) {
			for _, name := range names {
				info, err := disk.Stat(filepath.Join("standby", name))
				if err == nil && info.Size() > 0 {
					if err := disk.Remove(filepath.Join("standby", name)); err != nil {
						t.Fatal(err)
					}
					return
				}
			}
		}, func(int64) int64 { return 1 }},
		{"all with other bytes", func(t *testing.T, disk vfs.FS, names []string) {
			for _, name := range names {
				info, err := disk.Stat(filepath.Join("standby", name))
				if err != nil {
					t.Fatal(err)
				}
				write(t, disk, filepath.Join("standby", name), make([]byte, info.Size()))
			}
		}, func(files int64) int64 { return files }},
		{"all cut short", func(t *testing.T, disk vfs.FS, names []string) {
			for _, name := range names {
				write(t, disk, filepath.Join("standby", name), nil)
			}
		}, func(files int64) int64 { return files }},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := withCheckpoints(t)
			o, err := p.options(0).withDefaults()
			if err != nil {
				t.Fatal(err)
			}
			o.Standby = "standby"
			disk := p.disks[0]
			if err := disk.MkdirAll("standby", 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, disk, "standby/of an older checkpoint", []byte("x"))
			doc, fetched, err := o.fetchStandby(t.Context())
			if err != nil || doc == nil || fetched == 0 || fetched > doc.Bytes() {
				t.Fatalf("fetched %d bytes of %+v, %v", fetched, doc, err)
			}
			names, err := disk.List("standby")
			if err != nil || len(names) == 0 || len(names) > len(doc.Files) {
				t.Fatalf("%q, %v; want the checkpoint's %d files", names, err, len(doc.Files))
			}
			if again, fetched, err := o.fetchStandby(t.Context()); err != nil || again.Number != doc.Number || fetched != 0 {
				t.Fatalf("the second time fetched %d bytes of %+v, %v", fetched, again, err)
			}
			test.damage(t, disk, names)
			var opened atomic.Int64
			p.store.Fail = func(op, key string) error {
				if op == "open" && strings.HasPrefix(key, stateFilePrefix) {
					opened.Add(1)
				}
				return nil
			}
			s, err := Open(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close() //nolint:errcheck // test
			files := int64(0)
			for _, f := range doc.Files {
				if f.Bytes > 0 { // an empty one cannot be damaged
					files++
				}
			}
			if want := test.opened(files); opened.Load() != want {
				t.Errorf("%d files came from the store, want %d", opened.Load(), want)
			}
			if from := s.Next()[nodesTopic]; from != 20 {
				t.Errorf("reads on at %d, want 20", from)
			}
			p.consume(s, -1)
			sameRows(t, s.state.allRows(t), model(p.b.everything(), true))
		})
	}
}
