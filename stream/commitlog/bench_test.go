package commitlog

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"giantstream/sink"
	"giantstream/sink/dirstore"
)

// longLog writes a log of n manifests without rows into a directory.
func longLog(b *testing.B, n int64) sink.Store {
	b.Helper()
	root := b.TempDir()
	store, err := dirstore.Open(root)
	if err == nil {
		err = os.MkdirAll(filepath.Join(root, manifestPrefix(0)), 0o755)
	}
	if err != nil {
		b.Fatal(err)
	}
	var prev *Manifest
	for seq := int64(1); seq <= n; seq++ {
		m := &Manifest{Format: ManifestFormat, Seq: seq, Writer: "w", Next: map[string]int64{"nodes": seq}}
		m.Follow(prev)
		data, err := m.Encode("")
		if err == nil {
			err = os.WriteFile(filepath.Join(root, ManifestKey(0, seq)), data, 0o600) // and no sync
		}
		if err != nil {
			b.Fatal(err)
		}
		prev = m
	}
	return store
}

// How long a start and a poll of a long log take.
func BenchmarkHead(b *testing.B) {
	for _, n := range []int64{1000, 100_000} {
		store := longLog(b, n)
		b.Run(fmt.Sprintf("start/%d", n), func(b *testing.B) {
			for b.Loop() {
				if m, err := Head(b.Context(), store, 0); err != nil || m.Seq != n {
					b.Fatalf("%+v, %v", m, err)
				}
			}
		})
		b.Run(fmt.Sprintf("poll/%d", n), func(b *testing.B) {
			for b.Loop() {
				if m, err := Next(b.Context(), store, 0, n); err != nil || m != nil {
					b.Fatalf("%+v, %v", m, err)
				}
			}
		})
	}
}
