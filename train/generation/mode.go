package generation

// Mode says how much of a generation is made anew.
type Mode string

// The modes of a build.
const (
	// Full makes everything from the cut.
	Full Mode = "full"
	// Local keeps the parent's vocabulary, projection and tree, and re-clusters and re-trains where they have changed.
	// Where there is no parent to keep, it is Full.
	Local Mode = "local"
	// Warm keeps the parent's vocabulary, projection and views, re-clusters where the tree has changed, and trains the
	// parent's n-grams a little further on all nodes: embeddings stay near the parent's. Where nothing can be kept
	// (warm.go), it is Full.
	Warm Mode = "warm"
)
