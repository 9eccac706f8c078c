package service

import (
	"os"
	"runtime/debug"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/config"
	"giantstream/train/blas"
)

// Limit bounds what this process takes: memory by featurize.memory_limit,
// cores that train by train.threads.
func Limit(cfg *config.Config) {
	limitMemory(cfg)
	if cfg.Train.Threads > 0 {
		blas32.Use(blas.New().Limit(cfg.Train.Threads))
	}
}

// limitMemory has the Go runtime collect garbage rather than grow beyond
// featurize.memory_limit. By default it lets the heap double between two
// collections, so that a build that needs 1 GiB would take 2. The limit is a
// soft one: a build that needs more gets it, and spends up to half of its time
// collecting. GOMEMLIMIT, where it is set, rules.
func limitMemory(cfg *config.Config) {
	if limit := int64(cfg.Featurize.MemoryLimit); limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}
