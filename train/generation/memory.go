package generation

import "errors"

// What is as large as the texts is spooled: it moves to temporary files once
// it exceeds its share of Builder.MemoryLimit, 1/share each. What is left in
// memory is the graph, one matrix of nodes × embedding dimensions (two while
// embeddings are evaluated), and what depends on settings alone: counts of n-grams, projection,
// encoder.
const (
	textShare      = 8
	featureShare   = 4
	projectedShare = 4
)

// share returns how many bytes of a spool may stay in memory, < 0 for any
// number.
func (b *Builder) share(share int64) int64 {
	if b.MemoryLimit <= 0 {
		return -1
	}
	return b.MemoryLimit / share
}

// readError returns the first error of reading a spool in training.
func (f *building) readError() error {
	return errors.Join(f.features.err(), f.projected.err())
}

// close gives back what the build holds outside of memory.
func (f *building) close() {
	f.warn(f.corpus.close())
	if f.features != nil {
		f.warn(f.features.spool.close())
	}
	if f.projected != nil {
		f.warn(f.projected.spool.close())
	}
}

// warn logs that a temporary file could not be given back.
func (f *building) warn(err error) {
	if err != nil {
		f.Log.Warn("a temporary file is left behind", "error", err)
	}
}
