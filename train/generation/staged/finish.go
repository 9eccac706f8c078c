package staged

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"giantstream/featurize/tfidf"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
)

// finishGeneration writes the generation's document, which makes it one like any other, and removes what the tasks
// have left.
func (t *task) finishGeneration(ctx context.Context) error {
	if now, err := generation.Load(ctx, t.Store, t.plan.Generation); err != nil || now.Complete() {
		if err != nil {
			return err
		}
		return generation.RemoveTasks(ctx, t.Store, t.plan.Generation)
	}
	doc := *t.doc
	x, err := t.numbered(ctx)
	if err != nil {
		return err
	}
	linked, err := t.linked(ctx)
	if err != nil {
		return err
	}
	judged, err := stats[evaluateStats](ctx, t.build, Evaluate, 0)
	if err != nil {
		return err
	}
	trained, err := stats[encoderStats](ctx, t.build, Encoder, 0)
	if err != nil {
		return err
	}
	if doc.Tree, err = stats[generation.TreeStats](ctx, t.build, Tree, 0); err != nil {
		return err
	}
	hidden := linked.Hidden
	if judged.Whole {
		hidden = judged.Hidden
	}
	doc.GraphHash = x.Fingerprint
	doc.Graph = generation.GraphStats{Nodes: x.nodes(), Deleted: x.Deleted, Links: linked.Links,
		Dangling: linked.Dangling, Hidden: hidden, Isolated: linked.Isolated, Hubs: linked.Hubs, Classes: x.Classes,
		MaxDegree: linked.MaxDegree}
	doc.Encoder, doc.TextOnly = trained.EncoderStats, trained.TextOnly
	doc.Space = cmp.Or(trained.Space, doc.Generation)
	doc.Evaluation, doc.Shortfalls = judged.Evaluation, fit.Shortfalls(judged.Evaluation)
	v, err := t.loadVectorizer(ctx)
	if err != nil {
		return err
	}
	var ngrams tfidf.NGrams
	doc.Dataset, doc.Embeddings = nil, nil
	for p := range t.plan.Partitions {
		n, err := stats[tfidf.NGrams](ctx, t.build, Vectorise, p)
		if err != nil {
			return err
		}
		ngrams.Total, ngrams.Unknown = ngrams.Total+n.Total, ngrams.Unknown+n.Unknown
		e, err := stats[encodeStats](ctx, t.build, t.plan.embeddings(), p)
		if err != nil {
			return err
		}
		doc.Graph.NoText += e.NoText
		doc.Graph.FromNeighbours += e.FromNeighbours
		for stage, parts := range map[string]*[]generation.Part{Dataset: &doc.Dataset,
			t.plan.embeddings(): &doc.Embeddings} {
			from, err := t.from(ctx, stage, p)
			if err != nil {
				return err
			}
			*parts = append(*parts, from.parts()...)
		}
	}
	for _, parts := range [][]generation.Part{doc.Dataset, doc.Embeddings} {
		slices.SortFunc(parts, func(a, b generation.Part) int { return strings.Compare(a.Key, b.Key) })
	}
	if t.plan.Parent {
		m, err := stats[parentStats[generation.MappingStats]](ctx, t.build, Mapping, 0)
		if err != nil {
			return err
		}
		c, err := stats[parentStats[generation.OverlapStats]](ctx, t.build, Compare, 0)
		if err != nil {
			return err
		}
		doc.Mapping, doc.Overlap = m.Stats, c.Stats
	}
	doc.Vectorizer = generation.VectorizerStats{Features: v.Dim(), UnknownShare: ngrams.Share()}
	b := generation.Builder{Store: t.Store, Resources: t.resources()}
	return b.Finish(ctx, &doc, nil)
}

// drop forgets a build: the generation is read anew when it is asked for.
func (w *Worker) drop(g int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b := w.builds[g]; b != nil {
		b.keep(nil)
	}
	delete(w.builds, g)
}
