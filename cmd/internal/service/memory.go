package service

import (
	"os"
	"runtime/debug"

	"giantstream/config"
)

// LimitMemory has the Go runtime collect garbage rather than grow beyond
// featurize.memory_limit. By default it lets the heap double between two
// collections, so that a build that needs 1 GiB would take 2. The limit is a
// soft one: a build that needs more gets it, and spends up to half of its time
// collecting. GOMEMLIMIT, where it is set, rules.
func LimitMemory(cfg *config.Config) {
	if limit := int64(cfg.Featurize.MemoryLimit); limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}
