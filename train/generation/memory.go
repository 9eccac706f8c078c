package generation

import "log/slog"

// What stays in memory whatever Builder.MemoryLimit is, is what every node asks for at random: the
// graph, and one matrix of nodes × embedding dimensions, two while embeddings are evaluated. Counts
// of n-grams while the vectorizer is fitted, projection and encoder come on top. What is as large
// as the texts is spooled (package fit).

// Bytes that a build needs whatever the limit, per node (id, class, position, offsets) and link,
// and for what does not depend on the graph.
const (
	nodeBytes  = 128
	linkBytes  = 8
	fixedBytes = 256 << 20
)

// needed estimates the least memory that a build of a graph needs.
func needed(g GraphStats, dim int) int64 {
	matrices := 2 * int64(g.Nodes) * int64(dim) * 4
	return matrices + int64(g.Nodes)*nodeBytes + int64(g.Links)*linkBytes + fixedBytes
}

// warnOfMemory warns of a limit that cannot be kept.
func warnOfMemory(g GraphStats, dim int, limit int64, log *slog.Logger) {
	if n := needed(g, dim); limit > 0 && n > limit {
		log.Warn("the graph needs more memory than featurize.memory_limit; "+
			"raise it, or garbage collection will slow the build down",
			"limit_mib", limit>>20, "needed_mib", n>>20, "nodes", g.Nodes, "dim", dim)
	}
}
