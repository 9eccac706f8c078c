package train

import (
	"io"

	"giantstream/featurize/sparse"
)

// Graph is the cut of a generation as training sees it: the live nodes in a
// fixed order (ascending id, so independent of shards and windows) and their
// adjacency.
type Graph struct {
	IDs []string
	// Texts may be nil where they are kept elsewhere; encoders are trained on
	// features of them.
	Texts []string
	// Classes are the nodes' own classes for evaluation, "" where unknown.
	Classes []string
	// Neighbours is the n × n adjacency by position, rows ascending, no
	// self-loops, dangling edges left out; symmetric for undirected graphs.
	// Row i are the labels of instance i. Values are the weights of the links, above 0 and about 1 on average; an
	// adjacency has none.
	Neighbours *sparse.Matrix
}

// Len returns the number of nodes.
func (g *Graph) Len() int { return len(g.IDs) }

// Encoder is Φ: raw text to embedding. Implementations are safe for
// concurrent use and give each text the same vector whatever batch it is in.
type Encoder interface {
	// Kind is the name used in configuration and artifacts: "hybrid", "bag", "linear", "lsa", "bert".
	Kind() string
	Dim() int
	// Encode writes the embedding of texts[i] to out[i*Dim() : (i+1)*Dim()].
	Encode(texts []string, out []float32) error
}

// Close frees what an encoder holds on a device, once the texts that are being encoded are done. It
// is not to be used after. Most encoders hold nothing there.
func Close(e Encoder) error {
	if c, ok := e.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
