package generation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/projection"
	"giantstream/featurize/tfidf"
	"giantstream/internal/parallel"
	"giantstream/sink"
	"giantstream/train"
	"giantstream/train/encoders/bert"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/devices"
	"giantstream/train/encoders/linear"
	"giantstream/train/generation/fit"
)

// ErrTooFew: the texts tell no two nodes apart, so that there is nothing to fit.
var ErrTooFew = errors.New("too few nodes with different texts to fit a generation, which takes three")

// Builder builds generations in a store. One build at a time per store: where several processes may
// build, give it a store whose writes are fenced by a lease (sink/lease).
type Builder struct {
	Store    sink.Store
	Settings fit.Settings
	// CheckpointEvery is the time between two checkpoints of the encoder's training.
	CheckpointEvery time.Duration
	// Gate decides about a generation that is worse than text alone; "" is GateWarn. A build that is
	// resumed keeps the gate that it began with.
	Gate Gate
	// Canary: only the canary topic gets a generation, until people promote it. A build that is resumed keeps what it
	// began with, and the first generation is no canary.
	Canary bool
	// NewSpace: the embeddings need not be comparable with those of the generation before. A build that is resumed
	// keeps what it began with.
	NewSpace bool
	// Warm: a generation starts from what its parent has learned, where that is possible (warm.go). A build that is
	// resumed keeps what it began with.
	Warm bool
	// WarmUnknown is by how much more of the n-grams of changed texts than of all texts at the parent's cut the
	// vocabulary may lack for a warm start; 0 is any. A build that is resumed keeps what it began with.
	WarmUnknown float64
	// Because is why a generation is built, "" for unsaid. The document keeps it.
	Because string
	// Resources bound the build; memory.go lists what MemoryLimit does not. Progress may be nil.
	fit.Resources
}

// Until says after which stage a build stops; a later build resumes it.
type Until int

// The stops of a build.
const (
	UntilReady   Until = iota // embeddings written, status ready
	UntilDataset              // vectorizer, projection, tree and training set written
	UntilEncoder              // encoder trained
)

// BuildNext finishes the unfinished generation, if there is one, else builds the next. cut returns
// the source at a cut, or at the newest one for nil.
func (b *Builder) BuildNext(ctx context.Context, cut func(context.Context, map[int]int64) (Source, error),
	until Until) (*Doc, error) {
	unfinished, number, err := Next(ctx, b.Store)
	if err != nil {
		return nil, err
	}
	var at map[int]int64
	if unfinished != nil {
		at = unfinished.Cut
	}
	source, err := cut(ctx, at)
	if err != nil {
		return nil, err
	}
	return b.Build(ctx, number, source, until)
}

// Build takes generation g through its stages. A build of g that was begun before continues on the
// cut and with the settings that it began with: source must then show the same cut. Build returns
// the document as it is after the last stage.
func (b *Builder) Build(ctx context.Context, g int64, source Source, until Until) (doc *Doc, err error) {
	// A fault of a stage must not end what else the process does: it ingests and serves.
	defer func() {
		if v := recover(); v != nil {
			doc, err = nil, panicked(g, v)
		}
	}()
	return b.build(ctx, g, source, until)
}

// ErrPanic: a build ran into a fault of the program.
var ErrPanic = errors.New("the build has panicked, which is a fault of giantstream: report it with the stack below")

// panicked makes an error of a panic, with the stack of the goroutine that it was on.
func panicked(g int64, v any) error {
	p, ok := v.(*parallel.Panic)
	if !ok {
		p = &parallel.Panic{Value: v, Stack: debug.Stack()}
	}
	return fmt.Errorf("generation %d: %w: %w", g, ErrPanic, p)
}

func (b *Builder) build(ctx context.Context, g int64, source Source, until Until) (*Doc, error) {
	if err := b.Settings.Validate(); err != nil {
		return nil, err
	}
	doc, err := b.Begin(ctx, g, source.Cut())
	if err != nil {
		return nil, err
	}
	if doc.Complete() {
		return doc, nil
	}
	if err := b.noteMath(ctx, doc); err != nil {
		return nil, err
	}
	clock := newStageClock(b.Progress, b.Now)
	log := b.Log.With("generation", g)
	r := b.Resources
	r.Progress, r.Log = clock, log
	corpus, err := ReadCut(ctx, source, doc.Settings.MaxDegree, r)
	if err != nil {
		return nil, err
	}
	in := fit.Inputs{Texts: corpus.Texts}
	defer func() {
		if err := errors.Join(corpus.Close(), in.Features.Close(), in.Projected.Close()); err != nil {
			log.Warn("a temporary file is left behind", "error", err)
		}
	}()
	log.Info("cut read", "nodes", corpus.Stats.Nodes, "links", corpus.Stats.Links)
	warnOfMemory(corpus.Stats, doc.Settings.EmbeddingDim, b.MemoryLimit, log)
	doc.Graph, doc.GraphHash = corpus.Stats, source.Hash()
	run := &build{Builder: b, doc: doc, corpus: corpus, resources: r}
	if err := run.openKept(ctx); err != nil {
		return nil, err
	}
	defer func() { run.kept.close() }()
	if err := run.stages(ctx, &in, until); err != nil {
		err = fmt.Errorf("generation %d: %w", g, explainDevice(err))
		if errors.Is(err, ErrTooFew) {
			// Resumed on this cut the build would fail for ever. Without the document, the next
			// attempt begins on a cut that may have more.
			err = errors.Join(err, b.Store.Delete(ctx, docKey(g)))
		}
		return nil, err
	}
	clock.end()
	if until != UntilReady {
		return doc, doc.Save(ctx, b.Store)
	}
	return doc, b.Finish(ctx, doc, clock.times)
}

// Finish takes a generation whose objects are all in the store to its end: the document names them, and says ready or
// refused. Then what tasks have left is removed.
func (b *Builder) Finish(ctx context.Context, doc *Doc, stages []StageTime) error {
	log := b.Log.With("generation", doc.Generation)
	if err := doc.noteFiles(ctx, b.Store); err != nil {
		return err
	}
	doc.finish(stages, b.Now().UTC())
	if err := doc.Save(ctx, b.Store); err != nil {
		return err
	}
	if err := RemoveTasks(ctx, b.Store, doc.Generation); err != nil {
		return err
	}
	if doc.Status == Ready {
		log.Info("generation ready", "encoder", doc.Encoder.Kind, "nodes", doc.Graph.Nodes)
	}
	if warning := doc.Warning(); warning != "" && doc.Status == Ready {
		log.Warn("the generation is worse than text alone, and is served all the same", "because", warning)
	} else if doc.Status == Refused {
		log.Warn("generation refused by refresh.quality_gate; the one before it keeps serving", "because", warning,
			"serving", doc.Parent)
	}
	return nil
}

// build is a build in progress. Its methods run a stage, or load what the stage left in the store
// in an earlier run, and note its figures in the document.
type build struct {
	*Builder
	doc       *Doc
	corpus    *Corpus
	resources fit.Resources
	kept      *kept // nil for a build from scratch
}

func (b *build) key(name string) string { return Prefix(b.doc.Generation) + name }

// stages runs the stages up to the given one. in has the texts; the caller closes what it holds
// after.
func (b *build) stages(ctx context.Context, in *fit.Inputs, until Until) error {
	doc, s, p := b.doc, b.doc.Settings, b.resources.Progress
	if b.corpus.Stats.Nodes == 0 {
		return fmt.Errorf("%w: the graph has no node; check the topics and the field mapping", ErrTooFew)
	}
	known, hidden := fit.HideEdges(b.corpus.Graph, s)
	in.Graph, doc.Graph.Hidden = known, len(hidden)
	doc.TextOnly = ""
	if !fit.HasInstances(known, s) {
		b.textOnly(WhyTextOnly(b.corpus.Stats, s))
	}
	for _, stage := range []func(context.Context, *fit.Inputs) error{b.featurize, b.cluster, b.mapParent,
		b.writeDataset} {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := stage(ctx, in); err != nil {
			return err
		}
	}
	if until == UntilDataset {
		return nil
	}
	encoder, err := b.trainEncoder(ctx, *in)
	if err != nil {
		return err
	}
	defer train.Close(encoder) //nolint:errcheck // the build is over, whatever a device says
	if until == UntilEncoder {
		return nil
	}

	// From here on nothing reads what the encoder was trained on, so that memory has room for
	// embeddings.
	in.Labels = nil
	b.warn(in.Features.Close())
	p.Stage("evaluate text alone", 0)
	vectors, err := fit.EmbedText(in.Projected, in.Dim, b.Workers)
	if err != nil {
		return err
	}
	exam, err := ExamOf(in.Texts, vectors, in.Dim, known, hidden)
	if err != nil {
		return err
	}
	text, err := exam.Evaluate(linear.LSAKind, vectors, in.Dim, s, b.Workers, b.Log)
	if err != nil {
		return err
	}
	b.warn(in.Projected.Close())
	if vectors, err = fit.Embed(ctx, encoder, in.Texts, p); err != nil {
		return err
	}
	doc.Evaluation = []fit.Evaluation{text}
	if doc.TextOnly == "" {
		p.Stage("evaluate", 0)
		trained, err := exam.Evaluate(encoder.Kind(), vectors, encoder.Dim(), s, b.Workers, b.Log)
		if err != nil {
			return err
		}
		doc.Evaluation = append(doc.Evaluation, trained)
	}
	e := embeddings{vectors: vectors, dim: encoder.Dim()}
	if e.status, err = statuses(in.Texts, vectors, e.dim); err != nil {
		return err
	}
	doc.Shortfalls = fit.Shortfalls(doc.Evaluation)
	if err := b.compare(ctx, b.corpus.Graph, e); err != nil {
		return err
	}
	return b.writeEmbeddings(ctx, b.corpus.Graph, e)
}

// featurize takes the texts to Ψ and their projections.
func (b *build) featurize(ctx context.Context, in *fit.Inputs) (err error) {
	s, r := b.doc.Settings, b.resources
	r.Progress.Stage("fit vectorizer (TF-IDF)", int64(in.Texts.Len()))
	in.Vectorizer, err = artifact(ctx, b.Store, b.key(VectorizerName), tfidf.Read,
		func() (*tfidf.Model, error) { return b.vectorizer(ctx, in) }, (*tfidf.Model).Write)
	if errors.Is(err, tfidf.ErrNoText) {
		return b.alike(err)
	}
	if err != nil {
		return err
	}
	if in.Features, err = fit.Vectorize(ctx, in.Vectorizer, in.Texts, r); err != nil {
		return err
	}
	b.doc.Vectorizer = VectorizerStats{Features: in.Vectorizer.Dim(), UnknownShare: in.Features.UnknownShare()}
	r.Progress.Stage("fit projection (LSA)", 0)
	in.Projection, err = artifact(ctx, b.Store, b.key(ProjectionName), projection.Read,
		func() (*projection.Projection, error) { return b.projection(in) }, (*projection.Projection).Write)
	if errors.Is(err, projection.ErrNoData) {
		return b.alike(err)
	}
	if err != nil {
		return err
	}
	in.Dim = min(s.EmbeddingDim, in.Projection.Dim())
	in.Projected, err = fit.Project(ctx, in.Projection, in.Features, r)
	return err
}

// alike is the error of texts without features.
func (b *build) alike(err error) error {
	return fmt.Errorf("%w: there are %d, and their texts are too few, empty or all alike (%w)", ErrTooFew,
		b.corpus.Stats.Nodes, err)
}

// cluster makes the labels' features and the tree over them.
func (b *build) cluster(ctx context.Context, in *fit.Inputs) error {
	s := b.doc.Settings
	b.resources.Progress.Stage("PIFA and label tree", 0)
	labels, clustered, err := fit.LabelFeatures(in.Graph, in.Projected, in.Dim, s, b.Workers)
	if err == nil && b.doc.TextOnly != "" {
		// No neighbours, no PIFA: the tree is one of the texts.
		clustered, err = fit.EmbedText(in.Projected, in.Dim, b.Workers)
	}
	if err != nil {
		return err
	}
	in.Labels = labels
	features, err := labeltree.Dense(clustered, in.Dim)
	if err != nil {
		return err
	}
	tree, err := artifact(ctx, b.Store, b.key(TreeName), labeltree.Read,
		func() (*labeltree.Tree, error) { return b.tree(features) }, (*labeltree.Tree).Write)
	if err != nil {
		return err
	}
	in.Tree, in.Warm = tree, b.warm()
	b.noteWarm(tree)
	stats := TreeStats{Labels: in.Graph.Len(), MeanCosine: tree.MeanCosine(tree.Levels()-1, features, b.Workers)}
	for level := range tree.Levels() {
		stats.Levels = append(stats.Levels, tree.Clusters(level))
	}
	b.doc.Tree = stats
	return WriteLabels(ctx, b.Store, b.key(LabelsName), func(yield func(string, error) bool) {
		for _, id := range in.Graph.IDs {
			if !yield(id, nil) {
				return
			}
		}
	}, tree)
}

// noteMath adds to the document how the device multiplies, which figures depend on.
func (b *Builder) noteMath(ctx context.Context, doc *Doc) error {
	m := compute.MathOf(devices.OrCPU(b.Device))
	if m == compute.Float32 || doc.Settings.Encoder != bert.Kind || slices.Contains(doc.GPUMath, m) {
		return nil
	}
	doc.GPUMath = append(doc.GPUMath, m)
	return doc.Save(ctx, b.Store)
}

// warn logs that a temporary file could not be given back.
func (b *build) warn(err error) {
	if err != nil {
		b.resources.Log.Warn("a temporary file is left behind", "error", err)
	}
}

// Begin returns generation g's document. If there is none, it writes one: a build of that cut begins.
func (b *Builder) Begin(ctx context.Context, g int64, cut map[int]int64) (*Doc, error) {
	doc, err := Load(ctx, b.Store, g)
	switch {
	case err == nil:
		if doc.Status == Building && !maps.Equal(doc.Cut, cut) {
			return nil, fmt.Errorf("generation %d was begun on another cut; resume it with its own", g)
		}
		return doc, nil
	case !errors.Is(err, ErrNone):
		return nil, err
	}
	doc = &Doc{Format: DocFormat, Generation: g, Status: Building, Cut: cut,
		Settings: b.Settings, QualityGate: cmp.Or(b.Gate, GateWarn), Because: b.Because, Created: b.Now().UTC()}
	latest, err := Newest(ctx, b.Store)
	if err != nil {
		return nil, err
	}
	if parent := latest.Current; parent != nil {
		doc.inherit(parent)
		doc.Canary = b.Canary
		if b.Warm {
			b.startWarm(doc, parent, latest.Refused)
		}
		if !b.NewSpace {
			doc.KeepSpaceOf = parent.Generation
		}
	}
	return doc, doc.create(ctx, b.Store)
}
