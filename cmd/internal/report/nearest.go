package report

import (
	"context"
	"slices"
	"strings"

	"giantstream/cmd/internal/nodemap"
	"giantstream/internal/ambient"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/train"
	"giantstream/train/encoders/linear"
	"giantstream/train/generation"
	"giantstream/train/numeric"
)

const (
	// examplesShown is how many nodes the page shows the neighbours of, neighboursShown how many of
	// them.
	examplesShown   = 10
	neighboursShown = 5
	// exampleLinks is how many links a node needs to be an example.
	exampleLinks = 3
	// encodedAtOnce texts are encoded together.
	encodedAtOnce = 1024
)

// example is a node and what lies nearest to it.
type example struct {
	ID, Class, Excerpt   string
	TextOnly, GraphAware []neighbour
	shown                int // of the nearest
	text                 string
	links                map[string]bool
	psi, phi             []float32 // by text alone, and the generation's
}

// neighbour is a node near an example.
type neighbour struct {
	ID, Class, Excerpt string
	Cosine             float64
	Linked             bool // to the example
}

// offer puts n among the nearest if it belongs there. It copies what it keeps of n.
func (e *example) offer(nearest []neighbour, n neighbour) []neighbour {
	if n.ID == e.ID {
		return nearest
	}
	at, _ := slices.BinarySearchFunc(nearest, n, func(a, b neighbour) int {
		if a.Cosine > b.Cosine || a.Cosine == b.Cosine && a.ID < b.ID {
			return -1
		}
		return 1
	})
	if at >= e.shown {
		return nearest
	}
	n.ID, n.Class, n.Excerpt, n.Linked = strings.Clone(n.ID), strings.Clone(n.Class), excerpt(n.Excerpt), e.links[n.ID]
	nearest = slices.Insert(nearest, at, n)
	return nearest[:min(len(nearest), e.shown)]
}

// nearestInStore finds the examples' neighbours by the generation's embeddings.
func (s *surveyed) nearestInStore(ctx context.Context, store sink.Store, doc *generation.Doc,
	progress ambient.Progress) error {
	all := s.shown()
	return nodemap.EachEmbedding(ctx, store, doc, progress, "nearest neighbours", func(r *embedding.Record) {
		for _, e := range all {
			if e.phi == nil { // a node without text
				continue
			}
			e.GraphAware = e.offer(e.GraphAware, neighbour{ID: r.NodeID, Cosine: float64(numeric.Dot(e.phi, r.Vector))})
		}
	})
}

// nearestByText finds the examples' neighbours by their texts alone, and completes those that the
// embeddings found.
func (s *surveyed) nearestByText(ctx context.Context, source generation.Source, progress ambient.Progress) error {
	open, all := s.open, s.shown()
	encoder, err := linear.NewLSA(open.Vectorizer, open.Projection, min(open.Encoder.Dim(), open.Projection.Dim()))
	if err != nil {
		return err
	}
	found := map[string][]*neighbour{}
	for _, e := range all {
		e.psi = make([]float32, encoder.Dim())
		if err := encoder.Encode([]string{e.text}, e.psi); err != nil {
			return err
		}
		for j := range e.GraphAware {
			found[e.GraphAware[j].ID] = append(found[e.GraphAware[j].ID], &e.GraphAware[j])
		}
	}
	progress.Stage("nearest neighbours by text", int64(open.Doc.Graph.Nodes))
	return eachEncoded(ctx, source, encoder, func(n neighbour, vector []float32) {
		progress.Add(1)
		for _, f := range found[n.ID] {
			f.Class, f.Excerpt = strings.Clone(n.Class), excerpt(n.Excerpt)
		}
		for _, e := range all {
			n.Cosine = float64(numeric.Dot(e.psi, vector))
			e.TextOnly = e.offer(e.TextOnly, n)
		}
	})
}

// eachEncoded calls do with every node, its whole text for an excerpt, and the text's vector. It
// leaves out nodes whose text means nothing to the encoder.
func eachEncoded(ctx context.Context, source generation.Source, encoder train.Encoder,
	do func(neighbour, []float32)) error {
	var (
		nodes   []neighbour
		texts   []string
		dim     = encoder.Dim()
		vectors = make([]float32, encodedAtOnce*dim)
	)
	flush := func() error {
		if err := encoder.Encode(texts, vectors[:len(texts)*dim]); err != nil {
			return err
		}
		for i, n := range nodes {
			if v := vectors[i*dim : (i+1)*dim]; slices.ContainsFunc(v, func(x float32) bool { return x != 0 }) {
				do(n, v)
			}
		}
		nodes, texts = nodes[:0], texts[:0]
		return nil
	}
	for r, err := range source.Rows(ctx) {
		if err != nil {
			return err
		}
		if r.Deleted {
			continue
		}
		nodes = append(nodes, neighbour{ID: r.NodeID, Class: r.Class, Excerpt: r.Text})
		texts = append(texts, r.Text)
		if len(nodes) == encodedAtOnce {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}
