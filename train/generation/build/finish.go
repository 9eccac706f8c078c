package build

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"giantstream/featurize/tfidf"
	"giantstream/train/encoders/bert/compute"
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
	for _, describe := range []func(context.Context, *generation.Doc) error{t.describeGraph, t.describeFeatures,
		t.describeEncoder, t.describeQuality, t.describeEmbeddings} {
		if err := describe(ctx, &doc); err != nil {
			return err
		}
	}
	if err := doc.Finish(ctx, t.Store, t.took.list(t.plan, t.Now()), t.Now()); err != nil {
		return err
	}
	log := t.Resources.Log.With("generation", doc.Generation)
	switch warning := doc.Warning(); {
	case doc.Status == generation.Refused:
		log.Warn("generation refused by refresh.quality_gate; the one before it keeps serving", "because", warning,
			"serving", doc.Parent)
	default:
		log.Info("generation ready", "encoder", doc.Encoder.Kind, "nodes", doc.Graph.Nodes)
		if warning != "" {
			log.Warn("the generation is worse than text alone, and is served all the same", "because", warning)
		}
	}
	return nil
}

// describe stores the document of a generation that is not finished, with the figures of the stages that are done.
func (w *Worker) describe(ctx context.Context, plan Plan) (*generation.Doc, error) {
	b, err := w.of(ctx, plan.Generation)
	if err != nil || b == nil {
		return nil, err
	}
	doc := *b.doc
	for _, part := range []struct {
		stage    string
		describe func(context.Context, *generation.Doc) error
	}{{Link, b.describeGraph}, {Dataset, b.describeFeatures}, {Encoder, b.describeEncoder}} {
		s, _ := plan.stage(part.stage)
		for _, t := range plan.Of(s) {
			if done, err := w.Done(ctx, t); err != nil || !done {
				return &doc, doc.Save(ctx, w.Store)
			}
		}
		if err := part.describe(ctx, &doc); err != nil {
			return nil, err
		}
	}
	return &doc, doc.Save(ctx, w.Store)
}

// describeGraph notes the figures of the graph.
func (b *build) describeGraph(ctx context.Context, doc *generation.Doc) error {
	x, err := b.numbered(ctx)
	if err != nil {
		return err
	}
	linked, err := b.linked(ctx)
	if err != nil {
		return err
	}
	doc.GraphHash = x.Fingerprint
	doc.Graph = generation.GraphStats{Nodes: x.nodes(), Deleted: x.Deleted, Links: linked.Links,
		Dangling: linked.Dangling, Hidden: linked.Hidden, Isolated: linked.Isolated, Hubs: linked.Hubs,
		Classes: x.Classes, MaxDegree: linked.MaxDegree}
	return nil
}

// describeFeatures notes the vocabulary, the tree and the training set, and what a warm start has kept.
func (b *build) describeFeatures(ctx context.Context, doc *generation.Doc) error {
	tree, err := stats[treeStats](ctx, b, Tree, 0)
	if err != nil {
		return err
	}
	doc.Tree = tree.TreeStats
	warm, start, err := b.warm(ctx)
	switch {
	case err != nil:
		return err
	case warm:
		found := start.WarmStats
		found.Level, found.Subtrees = tree.Level, tree.Subtrees
		doc.Warm = &found
	default:
		doc.Forget()
	}
	v, err := b.loadVectorizer(ctx)
	if err != nil {
		return err
	}
	var ngrams tfidf.NGrams
	for p := range b.plan.Partitions {
		n, err := stats[tfidf.NGrams](ctx, b, Vectorise, p)
		if err != nil {
			return err
		}
		ngrams.Total, ngrams.Unknown = ngrams.Total+n.Total, ngrams.Unknown+n.Unknown
	}
	doc.Vectorizer = generation.VectorizerStats{Features: v.Dim(), UnknownShare: ngrams.Share()}
	doc.Dataset, err = b.partsOf(ctx, Dataset)
	return err
}

// describeEncoder notes the encoder.
func (b *build) describeEncoder(ctx context.Context, doc *generation.Doc) error {
	trained, err := stats[encoderStats](ctx, b, Encoder, 0)
	if err != nil {
		return err
	}
	doc.Encoder, doc.TextOnly, doc.GPUMath = trained.EncoderStats, trained.TextOnly, nil
	doc.Space = cmp.Or(trained.Space, doc.Generation)
	noteMath(doc, trained.GPUMath...)
	return nil
}

// describeQuality notes the evaluation, and how the generation compares with the one before.
func (b *build) describeQuality(ctx context.Context, doc *generation.Doc) error {
	judged, err := stats[evaluateStats](ctx, b, Evaluate, 0)
	if err != nil {
		return err
	}
	doc.Evaluation, doc.Shortfalls = judged.Evaluation, fit.Shortfalls(judged.Evaluation)
	if judged.Whole {
		doc.Graph.Hidden = judged.Hidden
	}
	if !b.plan.Parent {
		return nil
	}
	m, err := stats[parentStats[generation.MappingStats]](ctx, b, Mapping, 0)
	if err != nil {
		return err
	}
	c, err := stats[parentStats[generation.OverlapStats]](ctx, b, Compare, 0)
	if err != nil {
		return err
	}
	doc.Mapping, doc.Overlap = m.Stats, c.Stats
	return nil
}

// describeEmbeddings notes the embeddings.
func (b *build) describeEmbeddings(ctx context.Context, doc *generation.Doc) (err error) {
	for p := range b.plan.Partitions {
		e, err := stats[encodeStats](ctx, b, b.plan.embeddings(), p)
		if err != nil {
			return err
		}
		doc.Graph.NoText += e.NoText
		doc.Graph.FromNeighbours += e.FromNeighbours
		noteMath(doc, e.GPUMath)
	}
	doc.Embeddings, err = b.partsOf(ctx, b.plan.embeddings())
	return err
}

// partsOf returns the Parquet files that the tasks of a stage have written, by their keys.
func (b *build) partsOf(ctx context.Context, stage string) (all []generation.Part, err error) {
	for p := range b.plan.Partitions {
		from, err := b.from(ctx, stage, p)
		if err != nil {
			return nil, err
		}
		all = append(all, from.parts()...)
	}
	slices.SortFunc(all, func(a, b generation.Part) int { return strings.Compare(a.Key, b.Key) })
	return all, nil
}

// noteMath adds modes of GPUs to the document, each once.
func noteMath(doc *generation.Doc, modes ...compute.Math) {
	for _, m := range modes {
		if m != "" && !slices.Contains(doc.GPUMath, m) {
			doc.GPUMath = append(slices.Clone(doc.GPUMath), m)
		}
	}
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
