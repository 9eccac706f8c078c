package report

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/train"
	"giantstream/train/generation"
)

const (
	// sampled is how many nodes the map shows.
	sampled = 2000
	// excerptRunes is how much of a text the page shows.
	excerptRunes = 100
)

// mapped is a node of the sample.
type mapped struct {
	id, class, excerpt string
	hash               uint64
	vector             []float32
}

// surveyed is what was read of a generation.
type surveyed struct {
	nodes    []mapped // ascending by id
	dim      int
	examples []example
	// classless nodes are coloured by a level of the tree instead.
	classless bool
}

// survey reads the sample and the examples.
func survey(ctx context.Context, in Input, progress train.Progress) (*surveyed, error) {
	nodes, err := sample(ctx, in.Store, in.Doc, sampled, progress)
	if err != nil {
		return nil, err
	}
	s := &surveyed{nodes: nodes, dim: in.Doc.StoredDim()}
	open, err := generation.Open(ctx, in.Store, in.Doc, nil)
	if err != nil {
		return nil, err
	}
	if err := s.describe(ctx, in.Source, open, progress); err != nil {
		return nil, err
	}
	if err := s.nearestInStore(ctx, in.Store, in.Doc, progress); err != nil {
		return nil, err
	}
	return s, s.nearestByText(ctx, in.Source, open, progress)
}

// sample returns the nodes whose ids have the smallest hashes, ascending by id.
func sample(ctx context.Context, store sink.Store, doc *generation.Doc, size int,
	progress train.Progress) (nodes []mapped, err error) {
	byHash := func(a, b mapped) int { return cmp.Or(cmp.Compare(a.hash, b.hash), strings.Compare(a.id, b.id)) }
	most := ^uint64(0) // hashes above are out
	shrink := func() {
		slices.SortFunc(nodes, byHash)
		if len(nodes) > size {
			clear(nodes[size:])
			nodes = nodes[:size]
			most = nodes[size-1].hash
		}
	}
	err = eachEmbedding(ctx, store, doc, progress, "sample the embeddings", func(r *embedding.Record) {
		sum := sha256.Sum256([]byte(r.NodeID))
		hash := binary.BigEndian.Uint64(sum[:])
		if hash > most {
			return
		}
		nodes = append(nodes, mapped{id: strings.Clone(r.NodeID), hash: hash, vector: slices.Clone(r.Vector)})
		if len(nodes) == 2*size {
			shrink()
		}
	})
	shrink()
	slices.SortFunc(nodes, func(a, b mapped) int { return strings.Compare(a.id, b.id) })
	return nodes, err
}

// eachEmbedding calls do with every embedding of the generation. Nodes without text have none.
func eachEmbedding(ctx context.Context, store sink.Store, doc *generation.Doc, progress train.Progress,
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

// describe finds classes and texts of the sample, and chooses the examples from it.
func (s *surveyed) describe(ctx context.Context, source generation.Source, open *generation.Generation,
	progress train.Progress) error {
	at := map[string]int{}
	for i, n := range s.nodes {
		at[n.id] = i
	}
	candidates := map[int]example{}
	progress.Stage("read the sample's texts", int64(open.Doc.Graph.Nodes))
	for r, err := range source.Rows(ctx) {
		if err != nil {
			return err
		}
		progress.Add(1)
		i, ok := at[r.NodeID]
		if !ok {
			continue
		}
		n := &s.nodes[i]
		n.class, n.excerpt = strings.Clone(r.Class), excerpt(r.Text)
		if len(r.Labels) < exampleLinks {
			continue
		}
		e := example{ID: n.id, Class: n.class, Excerpt: n.excerpt, text: strings.Clone(r.Text), phi: n.vector,
			links: map[string]bool{}}
		for _, l := range r.Labels {
			e.links[strings.Clone(l)] = true
		}
		candidates[i] = e
		// Only those with the smallest hashes so far are kept: they hold their links.
		if len(candidates) > examplesShown {
			worst := -1
			for k := range candidates {
				if worst < 0 || s.nodes[k].hash > s.nodes[worst].hash {
					worst = k
				}
			}
			delete(candidates, worst)
		}
	}
	for i := range s.nodes {
		if e, ok := candidates[i]; ok {
			s.examples = append(s.examples, e)
		}
	}
	s.colourByCluster(open)
	return nil
}

// colourByCluster gives nodes their cluster for a class where none has a class.
func (s *surveyed) colourByCluster(open *generation.Generation) {
	for _, n := range s.nodes {
		if n.class != "" {
			return
		}
	}
	s.classless = true
	level := 0
	for k := range open.Tree.Levels() {
		if open.Tree.Clusters(k) <= coloured {
			level = k
		}
	}
	for i := range s.nodes {
		label, ok := open.Label(s.nodes[i].id)
		if !ok {
			continue
		}
		if c := open.Tree.Cluster(level, int(label)); c >= 0 {
			s.nodes[i].class = fmt.Sprintf("%d.%d", level, c)
		}
	}
}

// excerpt is the beginning of a text, on one line.
func excerpt(text string) string {
	text = strings.Join(strings.Fields(text[:min(len(text), 8*excerptRunes)]), " ")
	runes := []rune(strings.ToValidUTF8(text, ""))
	if len(runes) <= excerptRunes {
		return string(runes)
	}
	return string(runes[:excerptRunes]) + "…"
}
