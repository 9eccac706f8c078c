package generation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/live"
	"giantstream/featurize/pifa"
	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/featurize/tfidf"
	"giantstream/sink"
	"giantstream/sink/rows"
)

// Live is a generation's label tree as it would be for what has been committed
// since its cut: labels newer than the generation are in the leaves that their
// neighbours' texts put them in. It reads the commit log of all shards; nothing
// in the stream depends on it (docs/decisions, "Labels newer than the generation").
// Not safe for concurrent use.
type Live struct {
	Doc     *Doc
	Graph   *live.Graph
	Changes LiveChanges
	// MeanCosineAtCut is the mean cosine to the leaf's centre before the first change.
	MeanCosineAtCut float64

	base       *labeltree.Tree
	vectorizer *tfidf.Model
	projection *projection.Projection
	position   map[string]int32
	features   []sparse.Vector // Ψ of each node's text
}

// LiveChanges counts what happened to the tree after the cut.
type LiveChanges struct {
	Rows    int `json:"rows"`    // committed since, the newest of each node
	Added   int `json:"added"`   // labels that entered a leaf
	Moved   int `json:"moved"`   // labels that changed leaves, also by a split
	Removed int `json:"removed"` // labels that left
	Splits  int `json:"splits"`
}

// FollowTree returns the tree of a ready generation brought up to now. cut
// returns the source at a cut, or at the newest one for nil. Which tree comes out
// depends on the two cuts alone. Memory: the texts' features, and about 12 bytes per
// node and dimension of the PIFA sketch.
func FollowTree(ctx context.Context, store sink.Store, doc *Doc, cut func(context.Context,
	map[int]int64) (Source, error)) (*Live, error) {
	l, err := openLive(ctx, store, doc)
	if err != nil {
		return nil, err
	}
	before, err := cut(ctx, doc.Cut)
	if err != nil {
		return nil, err
	}
	if err := l.begin(ctx, before); err != nil {
		return nil, err
	}
	now, err := cut(ctx, nil)
	if err != nil {
		return nil, err
	}
	for r, err := range now.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		if r.Seq > doc.Cut[r.Shard] {
			l.Apply(&r.Row)
		}
	}
	return l, nil
}

func openLive(ctx context.Context, store sink.Store, doc *Doc) (*Live, error) {
	switch kind, err := pifa.ParseKind(doc.Settings.LabelFeatures); {
	case err != nil:
		return nil, fmt.Errorf("generation %d: %w", doc.Generation, err)
	case kind != pifa.PIFA:
		return nil, fmt.Errorf("generation %d: its tree is built from %s, which does not follow changes; only %s does",
			doc.Generation, kind, pifa.PIFA)
	}
	l := &Live{Doc: doc, position: make(map[string]int32, doc.Tree.Labels)}
	var err error
	if l.vectorizer, l.projection, l.base, err = loadArtifacts(ctx, store, doc); err != nil {
		return nil, err
	}
	if l.projection, err = l.projection.Truncate(min(doc.Settings.EmbeddingDim, l.projection.Dim())); err != nil {
		return nil, err
	}
	for label, err := range readLabels(ctx, store, doc) {
		if err != nil {
			return nil, err
		}
		l.position[strings.Clone(label.NodeID)] = int32(len(l.position))
	}
	if len(l.position) != l.base.Labels() {
		return nil, fmt.Errorf("generation %d: labels.parquet has %d labels, the tree %d", doc.Generation,
			len(l.position), l.base.Labels())
	}
	return l, nil
}

// begin makes the graph at the generation's own cut.
func (l *Live) begin(ctx context.Context, cut Source) error {
	n, dim := len(l.position), l.projection.Dim()
	l.features = make([]sparse.Vector, n)
	projected := make([]float32, n*dim)
	labels := make([][]int32, n)
	var dangling [][2]string
	for r, err := range cut.Rows(ctx) {
		if err != nil {
			return err
		}
		i, ok := l.position[r.NodeID]
		if r.Deleted || !ok {
			continue
		}
		l.features[i] = l.vectorizer.Transform(r.Text, sparse.Vector{})
		l.projection.Apply(l.features[i], projected[int(i)*dim:])
		for _, id := range r.Labels {
			switch j, ok := l.position[id]; {
			case !ok:
				dangling = append(dangling, [2]string{strings.Clone(r.NodeID), strings.Clone(id)})
			case i != j:
				labels[i] = append(labels[i], j)
			}
		}
	}
	y := &sparse.Matrix{Cols: n, Start: []int64{0}}
	for _, row := range labels {
		slices.Sort(row)
		y.Append(sparse.Vector{Index: row})
	}
	weighting, err := pifa.ParseWeighting(l.Doc.Settings.Weighting)
	if err != nil {
		return err
	}
	l.Graph, err = live.NewGraph(l.base, projected, dim, y, weighting,
		live.Options{MaxLeafSize: l.Doc.Settings.LeafSize,
			Seed: l.Doc.Settings.TreeSeed, Observe: l.count})
	if err != nil {
		return err
	}
	for _, d := range dangling {
		l.Graph.AddEdge(l.node(d[0]), l.node(d[1]))
	}
	l.MeanCosineAtCut = l.Graph.Tree().MeanCosine(l.base.Levels() - 1)
	l.Changes = LiveChanges{} // the edges hidden from the fit have moved labels before the first row
	return nil
}

func (l *Live) count(e live.Event) {
	switch e.Kind {
	case live.Added:
		l.Changes.Added++
	case live.Moved:
		l.Changes.Moved++
	case live.Removed:
		l.Changes.Removed++
	case live.Split:
		l.Changes.Splits++
	}
}

// node returns the position of an id, a new one if it is new.
func (l *Live) node(id string) int32 {
	n, ok := l.position[id]
	if !ok {
		n = l.Graph.Grow(1)
		l.position[strings.Clone(id)] = n
	}
	return n
}

// Apply brings in a committed row: the node's text and labels as they are now.
func (l *Live) Apply(row *rows.Row) {
	l.Changes.Rows++
	n := l.node(row.NodeID)
	labels := make([]int32, 0, len(row.Labels))
	for _, id := range row.Labels {
		labels = append(labels, l.node(id))
	}
	slices.Sort(labels)
	l.features = append(l.features, make([]sparse.Vector, l.Graph.Len()-len(l.features))...)
	for _, label := range slices.Clone(l.Graph.Labels(n)) {
		if _, still := slices.BinarySearch(labels, label); !still {
			l.Graph.RemoveEdge(n, label)
		}
	}
	if row.Deleted {
		l.Graph.Delete(n)
		l.features[n] = sparse.Vector{}
		return
	}
	l.features[n] = l.vectorizer.Transform(row.Text, sparse.Vector{})
	text := make([]float32, l.projection.Dim())
	l.projection.Apply(l.features[n], text)
	l.Graph.SetText(n, text)
	for _, label := range labels {
		l.Graph.AddEdge(n, label)
	}
}

// Outline lists the clusters of the live tree, depth first.
func (l *Live) Outline(o OutlineOptions) []Cluster {
	features := &sparse.Matrix{Cols: l.vectorizer.Dim(), Start: []int64{0}}
	for _, v := range l.features {
		features.Append(v)
	}
	for features.Rows < l.Graph.Len() {
		features.Append(sparse.Vector{})
	}
	return outlineOf(l.Graph.Tree(), tfidf.NewTerms(l.vectorizer, features), o)
}
