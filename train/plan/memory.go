package plan

import "giantstream/train/generation/staged"

const (
	program    = 160 << 20 // runtime, code, buffers of the store
	vocabulary = 300 << 20 // counts while the vectorizer is fitted, see ARCHITECTURE.md
	model      = 400 << 20 // vectorizer and projection, or an encoder
	perSampled = 2300      // of the encoder's training in one process
)

// memory of a stage, in bytes: what a machine holds once, the program and its models, and what each task holds
// (docs/BUILD.md). A partition has as many nodes as the graph divided by the partitions, and a fifth more, since hashes
// are not even.
func memory(g Graph, projectionDim, embeddingDim int, division staged.Plan, stage string) (shared, task int64) {
	uneven := func(n, parts int64) int64 { return n * 6 / 5 / max(1, parts) }
	partitions := int64(division.Partitions)
	rows := uneven(g.Nodes, partitions)
	texts := uneven(g.TextBytes, partitions)
	references := uneven(g.References, partitions)
	dim := int64(embeddingDim)
	sample := min(g.Nodes, int64(division.Sample))
	switch stage {
	case staged.Scatter:
		return program, 48 << 20
	case staged.Number:
		return program, texts + rowBytes*rows + referenceBytes*references
	case staged.Resolve, staged.Link:
		return program, 8*references + 12*rows
	case staged.Count:
		return program, vocabulary + texts
	case staged.Merge, staged.Vectorizer:
		return program, vocabulary
	case staged.Projection, staged.Finish:
		return program + model, 0
	case staged.Vectorise:
		return program + model, texts
	case staged.Encode:
		return program + model, texts + rows*int64(4*projectionDim)
	case staged.Dataset:
		return program + model + 8*g.Nodes, texts + referenceBytes*references // the tree
	case staged.PIFA:
		return program, 4*dim*uneven(g.Nodes, int64(division.Ranges)) + 2*dim*rows + 8*references
	case staged.Spread:
		return program, 48<<20 + 4*references/32
	case staged.Features:
		return program, 4*dim*rows + 8*references
	case staged.Trunk:
		return program, 8 * g.Nodes
	case staged.Deal, staged.Branch:
		return program, 8 * dim * rows
	case staged.Tree:
		return program, 12 * g.Nodes
	case staged.Mapping:
		return program, 40 * g.Nodes
	case staged.Encoder:
		return program + model, perSampled * sample
	case staged.Evaluate:
		return program + model, 8 * dim * sample
	case staged.Fill:
		return program, 4*dim*rows + 8*references
	case staged.Compare:
		return program, 8 * dim * compared
	}
	return program, 0
}
