package generation

import "errors"

// What is as large as the texts is spooled: it moves to temporary files once
// it exceeds its share of Builder.MemoryLimit, 1/share each. What stays in
// memory whatever the limit is what every node asks for at random: the graph,
// and one matrix of nodes × embedding dimensions, two while embeddings are
// evaluated. Counts of n-grams while the vectorizer is fitted (countBudget),
// projection and encoder come on top.
const (
	textShare      = 8
	featureShare   = 4
	projectedShare = 4
)

// countBudget bounds the counts of n-grams while the vectorizer is fitted: 4
// million pairs of words. Beyond it rare n-grams are forgotten, which the
// outcome may show; so it is the same whatever Builder.MemoryLimit is.
const countBudget = 512 << 20

// Bytes that a build needs whatever the limit, per node (id, class, position,
// offsets) and link, and for what does not depend on the graph.
const (
	nodeBytes  = 128
	linkBytes  = 8
	fixedBytes = 256 << 20
)

// needed estimates the least memory that a build of a graph can do with.
func needed(g GraphStats, dim int) int64 {
	matrices := 2 * int64(g.Nodes) * int64(dim) * 4
	return matrices + int64(g.Nodes)*nodeBytes + int64(g.Links)*linkBytes + fixedBytes
}

// checkMemory warns of a limit that cannot be kept.
func (f *building) checkMemory() {
	if n := needed(f.corpus.stats, f.doc.Settings.PIFADim); f.MemoryLimit > 0 && n > f.MemoryLimit {
		f.Log.Warn("the graph needs more memory than featurize.memory_limit; raise it, or garbage collection will slow the build down",
			"limit_mib", f.MemoryLimit>>20, "needed_mib", n>>20, "nodes", f.corpus.stats.Nodes, "dim", f.doc.Settings.PIFADim)
	}
}

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
