package fit

import (
	"log/slog"
	"time"

	"giantstream/internal/ambient"
	"giantstream/train/encoders/bert/compute"
)

// Resources are what the stages may use, and where they report. No outcome depends on them, except for
// the last bits of what a transformer computes, which depend on the kind of device.
type Resources struct {
	// Workers is the number of goroutines, 0 for one per CPU.
	Workers int
	// MemoryLimit is how many bytes a build may use before it keeps texts and features in
	// temporary files, 0 for any number.
	MemoryLimit int64
	// Device runs transformers, nil for the CPU. It stays open while what was trained on it is used.
	Device   compute.Backend
	Progress ambient.Progress
	Log      *slog.Logger
	Now      func() time.Time
}

// What is as large as the texts is spooled: it moves to a temporary file once it exceeds its share
// of MemoryLimit, 1/share each.
const (
	textShare      = 8
	featureShare   = 4
	projectedShare = 4
)

// spool returns a spool that may keep a share of the limit in memory.
func (r Resources) spool(share int64) *spool {
	if r.MemoryLimit <= 0 {
		return newSpool(-1)
	}
	return newSpool(r.MemoryLimit / share)
}

// countBudget bounds the counts of n-grams while the vectorizer is fitted: 4 million pairs of
// words. Beyond it rare n-grams are forgotten, which the outcome may show. So the budget is the
// same whatever MemoryLimit is.
const countBudget = 512 << 20
