package nodemap

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"giantstream/internal/ambient"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/rows"
	"giantstream/train/generation"
)

// Sampled is how many nodes a map shows.
const Sampled = 2000

// Node is a node of the sample.
type Node struct {
	ID, Class string
	// Excerpt is the beginning of its text, where somebody has read the texts.
	Excerpt string
	Hash    uint64
	Vector  []float32
}

// Read returns the nodes whose ids have the smallest hashes, at most size of them, ascending by id. Their
// classes are empty, as are their excerpts.
func Read(ctx context.Context, store sink.Store, doc *generation.Doc, size int,
	progress ambient.Progress) (nodes []Node, err error) {
	byHash := func(a, b Node) int { return cmp.Or(cmp.Compare(a.Hash, b.Hash), strings.Compare(a.ID, b.ID)) }
	most := ^uint64(0) // hashes above are out
	shrink := func() {
		slices.SortFunc(nodes, byHash)
		if len(nodes) > size {
			clear(nodes[size:])
			nodes = nodes[:size]
			most = nodes[size-1].Hash
		}
	}
	err = EachEmbedding(ctx, store, doc, progress, "sample the embeddings", func(r *embedding.Record) {
		sum := sha256.Sum256([]byte(r.NodeID))
		hash := binary.BigEndian.Uint64(sum[:])
		if hash > most {
			return
		}
		nodes = append(nodes, Node{ID: strings.Clone(r.NodeID), Hash: hash, Vector: slices.Clone(r.Vector)})
		if len(nodes) == 2*size {
			shrink()
		}
	})
	shrink()
	slices.SortFunc(nodes, func(a, b Node) int { return strings.Compare(a.ID, b.ID) })
	return nodes, err
}

// EachEmbedding calls do with every embedding of the generation. Nodes without text have none. do copies what
// it keeps of the record.
func EachEmbedding(ctx context.Context, store sink.Store, doc *generation.Doc, progress ambient.Progress,
	stage string, do func(*embedding.Record)) error {
	var rows int64
	for _, part := range doc.Embeddings {
		rows += part.Rows
	}
	progress.Stage(stage, rows)
	for _, part := range doc.Embeddings {
		for r, err := range embedding.ReadParquet(ctx, store, part.Ref()) {
			if err != nil {
				return err
			}
			progress.Add(1)
			if r.Status == embedding.NoText {
				continue
			}
			if len(r.Vector) != doc.StoredDim() {
				return fmt.Errorf("%s: node %q has %d dimensions, the generation %d", part.Key, r.NodeID, len(r.Vector),
					doc.StoredDim())
			}
			do(&r)
		}
	}
	return nil
}

// Classify gives the nodes their classes from the training set, which reads two columns of it. Nodes without a
// link are not in the training set, and stay without a class.
func Classify(ctx context.Context, store sink.Store, doc *generation.Doc, nodes []Node) error {
	at := make(map[string]int, len(nodes))
	for i, n := range nodes {
		at[n.ID] = i
	}
	options := rows.ReadOptions{Columns: []string{rows.ColNodeID, rows.ColClass}}
	for _, part := range doc.Dataset {
		for r, err := range rows.Nodes.Read(ctx, store, part.Ref(), options) {
			if err != nil {
				return err
			}
			if i, ok := at[r.NodeID]; ok {
				nodes[i].Class = strings.Clone(r.Class)
			}
		}
	}
	return nil
}

// ClusterAsClass gives each node its cluster of the label tree for a class, "level.cluster", if none has a class. The
// level is the finest with at most Coloured clusters. It reports whether it did.
func ClusterAsClass(nodes []Node, open *generation.Generation) bool {
	if slices.ContainsFunc(nodes, func(n Node) bool { return n.Class != "" }) {
		return false
	}
	level := 0
	for k := range open.Tree.Levels() {
		if open.Tree.Clusters(k) <= Coloured {
			level = k
		}
	}
	for i := range nodes {
		label, ok := open.Label(nodes[i].ID)
		if !ok {
			continue
		}
		if c := open.Tree.Cluster(level, int(label)); c >= 0 {
			nodes[i].Class = fmt.Sprintf("%d.%d", level, c)
		}
	}
	return true
}
