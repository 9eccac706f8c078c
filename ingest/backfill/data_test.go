package backfill_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"giantstream/ingest/internal/kafkatest"
)

// TestDebianPackages sends a real graph: 63,666 nodes, 277,179 edges, none bad.
func TestDebianPackages(t *testing.T) {
	dir := os.Getenv("GIANTSTREAM_DATA")
	if dir == "" {
		dir = "../../../shared/data"
	}
	dir = filepath.Join(dir, "debian-packages")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no data: %v (set GIANTSTREAM_DATA)", err)
	}
	e := kafkatest.Start(t, 8)
	o := options(e)
	o.Nodes = files(t, filepath.Join(dir, "nodes.jsonl.gz"))
	o.Edges = files(t, filepath.Join(dir, "edges.jsonl.gz"))
	start := time.Now()
	stats := run(t, o)
	t.Logf("%d nodes and %d edges in %v", stats.Nodes, stats.Edges, time.Since(start).Round(time.Millisecond))
	if stats.Nodes != 63_666 || stats.Edges != 277_179 || stats.Oversize != 0 {
		t.Errorf("stats %+v", stats)
	}
}
