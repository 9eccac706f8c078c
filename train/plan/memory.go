package plan

import "giantstream/train/generation/build/stages"

const (
	program    = 160 << 20 // runtime, code, buffers of the store
	vocabulary = 300 << 20 // counts while the vectorizer is fitted, see ARCHITECTURE.md
	model      = 400 << 20 // vectorizer and projection, or an encoder
	perSampled = 2300      // of the encoder's training in one process
)

// memory of a stage, in bytes: what a machine holds once, the program and its models, and what each task holds
// (docs/BUILD.md). A partition has as many nodes as the graph divided by the partitions, and a fifth more, since hashes
// are not even.
func memory(g Graph, projectionDim, embeddingDim int, division stages.Plan, stage string) (shared, task int64) {
	uneven := func(n, parts int64) int64 { return n * 6 / 5 / max(1, parts) }
	partitions := int64(division.Partitions)
	rows := uneven(g.Nodes, partitions)
	texts := uneven(g.TextBytes, partitions)
	references := uneven(g.References, partitions)
	dim := int64(embeddingDim)
	sample := min(g.Nodes, int64(division.Sample))
	switch stage {
	case stages.Scatter:
		return program, 48 << 20
	case stages.Number:
		return program, texts + rowBytes*rows + referenceBytes*references
	case stages.Resolve, stages.Link:
		return program, 8*references + 12*rows
	case stages.Count:
		return program, vocabulary + texts
	case stages.Merge, stages.Vectorizer:
		return program, vocabulary
	case stages.Projection, stages.Finish:
		return program + model, 0
	case stages.Vectorise:
		return program + model, texts
	case stages.Encode:
		return program + model, texts + rows*int64(4*projectionDim)
	case stages.Dataset:
		return program + model + 8*g.Nodes, texts + referenceBytes*references // the tree
	case stages.PIFA:
		return program, 4*dim*uneven(g.Nodes, int64(division.Ranges)) + 2*dim*rows + 8*references
	case stages.Spread:
		return program, 48<<20 + 4*references/32
	case stages.Features:
		return program, 4*dim*rows + 8*references
	case stages.Trunk:
		return program, 8 * g.Nodes
	case stages.Deal, stages.Branch:
		return program, 8 * dim * rows
	case stages.Tree:
		return program, 12 * g.Nodes
	case stages.Mapping:
		return program, 40 * g.Nodes
	case stages.Encoder:
		return program + model, perSampled * sample
	case stages.Evaluate:
		return program + model, 8 * dim * sample
	case stages.Fill:
		return program, 4*dim*rows + 8*references
	case stages.Compare:
		return program, 8 * dim * compared
	}
	return program, 0
}
