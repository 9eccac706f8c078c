package generation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/featurize/tfidf"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/rows"
	"giantstream/train"
	"giantstream/train/encoders"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/hybrid"
)

// Generation is a ready generation, opened for serving. It is immutable, but
// for the counters, and safe for concurrent use.
type Generation struct {
	Doc        *Doc
	Vectorizer *tfidf.Model
	Projection *projection.Projection
	Tree       *labeltree.Tree
	Encoder    train.Encoder
	// UnknownLabels counts the labels of featurized rows that were in no
	// cluster of the tree: newer than the generation, deleted, or without a
	// neighbour when it was built. Open makes one; set another before serving to
	// count across generations.
	UnknownLabels *atomic.Int64
	// NGrams counts the n-grams of featurized rows, as UnknownLabels does labels.
	NGrams *tfidf.NGramCount
	// position of each label in the tree.
	position map[string]int32
}

// Open reads a generation that is ready, or refused (for reports; it is not to be served). A transformer
// runs on the device, nil for the CPU, until nothing refers to the encoder any more. ErrDamaged if one
// of its objects is missing, or not what its build left. Memory: the artifacts, and the labels' ids.
func Open(ctx context.Context, store sink.Store, doc *Doc, device compute.Backend) (*Generation, error) {
	g, err := open(ctx, store, doc, device)
	return g, damaged(doc.Generation, err)
}

func open(ctx context.Context, store sink.Store, doc *Doc, device compute.Backend) (*Generation, error) {
	if !doc.Complete() {
		return nil, fmt.Errorf("generation %d is %s, not ready", doc.Generation, doc.Status)
	}
	g := &Generation{Doc: doc, UnknownLabels: new(atomic.Int64), NGrams: new(tfidf.NGramCount),
		position: make(map[string]int32, doc.Tree.Labels)}
	var err error
	if g.Vectorizer, g.Projection, g.Tree, err = loadArtifacts(ctx, store, doc); err != nil {
		return nil, err
	}
	for l, err := range readLabels(ctx, store, doc) {
		if err != nil {
			return nil, err
		}
		g.position[strings.Clone(l.NodeID)] = int32(len(g.position))
	}
	if len(g.position) != g.Tree.Labels() {
		return nil, fmt.Errorf("%w: labels.parquet has %d labels, the tree %d", sink.ErrDamaged, len(g.position),
			g.Tree.Labels())
	}
	g.Encoder, err = openEncoder(ctx, store, doc, g.Vectorizer, g.Projection, device)
	return g, err
}

func openEncoder(ctx context.Context, store sink.Store, doc *Doc, v *tfidf.Model, p *projection.Projection,
	device compute.Backend) (train.Encoder, error) {
	if err := doc.verifyUnder(ctx, store, EncoderName+"/"); err != nil {
		return nil, err
	}
	e, _, err := encoders.Load(ctx, store, Prefix(doc.Generation)+EncoderName, v, p, device)
	return e, err
}

// Label returns a node's position in the tree.
func (g *Generation) Label(id string) (int32, bool) {
	i, ok := g.position[id]
	return i, ok
}

// Featurize fills in the row's features and targets. Labels that are in no
// cluster of the tree are left out of the targets and counted in UnknownLabels
// (why: docs/decisions, "Labels newer than the generation").
func (g *Generation) Featurize(row *rows.Row) error {
	v, ngrams := g.Vectorizer.TransformCounting(row.Text, sparse.Vector{Index: row.FeatureIndices[:0],
		Value: row.FeatureValues[:0]})
	g.NGrams.Add(ngrams)
	row.FeatureIndices, row.FeatureValues = v.Index, v.Value
	labels := make([]int32, 0, len(row.Labels))
	for _, id := range row.Labels {
		if i, ok := g.position[id]; ok {
			labels = append(labels, i)
		}
	}
	slices.Sort(labels)
	row.Targets, row.TargetCounts = labeltree.Targets(g.Tree, labels)
	unknown := len(row.Labels)
	for _, n := range row.TargetCounts[len(row.TargetCounts)-1] {
		unknown -= int(n)
	}
	g.UnknownLabels.Add(int64(unknown))
	row.Generation = g.Doc.Generation
	return nil
}

// TakesVector says whether the vector of nodes that an input states under a name is a view of the encoder.
func (g *Generation) TakesVector(name string, input int32) bool {
	e, is := g.Encoder.(*hybrid.Encoder)
	return is && slices.ContainsFunc(e.Views().Vectors, func(v hybrid.VectorView) bool {
		return v.Name == name && v.Input == input
	})
}

// EmbedTexts makes embeddings of texts that are no nodes', in the form that the generation stores. The records have no
// more than that. vectors are those that the texts have of a view that the encoder takes, nil for none at all.
func (g *Generation) EmbedTexts(texts []string, view string, vectors [][]float32) ([]embedding.Record, error) {
	return g.embed(texts, func(out []float32) error {
		if e, is := g.Encoder.(*hybrid.Encoder); is && vectors != nil {
			return e.EncodeTexts(texts, view, vectors, out)
		}
		return g.Encoder.Encode(texts, out)
	})
}

// EmbedNodes is EmbedTexts for nodes, with all that the encoder knows of those with these ids.
func (g *Generation) EmbedNodes(ids, texts []string) ([]embedding.Record, error) {
	return g.embed(texts, func(out []float32) error { return g.Encode(ids, texts, out) })
}

// Encode writes the embeddings of nodes to out, one after the other.
func (g *Generation) Encode(ids, texts []string, out []float32) error {
	return train.EncodeItems(g.Encoder, ids, texts, nil, out)
}

func (g *Generation) embed(texts []string, encode func(out []float32) error) ([]embedding.Record, error) {
	d := g.Encoder.Dim()
	vectors := make([]float32, len(texts)*d)
	if err := encode(vectors); err != nil {
		return nil, err
	}
	out := make([]embedding.Record, len(texts))
	for i, text := range texts {
		out[i].SetVector(text, vectors[i*d:(i+1)*d:(i+1)*d])
		out[i] = g.Doc.Settings.Stored.Narrow(out[i])
	}
	return out, nil
}
