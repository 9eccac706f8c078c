package wiring

import (
	"testing"

	"giantstream/config"
)

// A store of a release that had fewer settings is one of this release, as long as these do what the old
// release did; with others, it is another graph, also for the old release.
func TestSettingsThatWereAdded(t *testing.T) {
	cfg := config.Default()
	if _, ok := GraphSettings(&cfg)["ingest.nodes.deleted"]; ok {
		t.Error("a store of an older release would be refused")
	}
	cfg.Ingest.Nodes.Deleted = "status in [draft, archived]"
	if got := GraphSettings(&cfg)["ingest.nodes.deleted"]; got != cfg.Ingest.Nodes.Deleted {
		t.Errorf("another mapping is not one of the store's settings: %q", got)
	}
}
