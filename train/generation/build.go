package generation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"giantstream/sink"
	"giantstream/train"
)

// ErrTooFew: the graph is too small to learn from.
var ErrTooFew = errors.New("too few nodes with neighbours to fit a generation")

// Builder builds generations in a store. One build at a time per store: give
// it a store whose writes are fenced by a lease (sink/lease) where several
// processes may want to.
type Builder struct {
	Store    sink.Store
	Settings Settings
	// Workers is the number of goroutines, 0 for one per CPU. It does not
	// change the outcome.
	Workers int
	// CheckpointEvery is the time between two checkpoints of the encoder's
	// training.
	CheckpointEvery time.Duration
	// MemoryLimit is how many bytes a build may use before it keeps texts and
	// features in temporary files, 0 for any number. It does not change the
	// outcome. See memory.go for what it cannot bound.
	MemoryLimit int64
	Progress    train.Progress
	Log         *slog.Logger
	Now         func() time.Time
}

// Until says after which stage a build stops; it can be taken up again.
type Until int

// The stops of a build.
const (
	UntilReady   Until = iota // embeddings written, status ready
	UntilDataset              // vectorizer, projection, tree and training set written
	UntilEncoder              // encoder trained
)

// BuildNext finishes the unfinished generation, if there is one, else builds
// the next. cut returns the source at a cut, or at the newest one for nil.
func (b *Builder) BuildNext(ctx context.Context, cut func(context.Context, map[int]int64) (Source, error), until Until) (*Doc, error) {
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

// Build takes generation g through its stages, on source or, if a build of g
// was begun before, on what that build began with: source must then show
// the same cut. It returns the document as it stands after the last stage.
func (b *Builder) Build(ctx context.Context, g int64, source Source, until Until) (*Doc, error) {
	if err := b.Settings.check(); err != nil {
		return nil, err
	}
	clock := newStageClock(b.Progress, b.Now)
	doc, err := b.begin(ctx, g, source)
	if err != nil {
		return nil, err
	}
	if doc.Status == Ready {
		return doc, nil
	}
	log := b.Log.With("generation", g)
	clock.Stage("read the cut", 0)
	corpus, err := loadCorpus(ctx, source, doc.Settings.MaxDegree, b.share(textShare), clock)
	if err != nil {
		return nil, err
	}
	f := &building{Builder: b, ctx: ctx, doc: doc, corpus: corpus, clock: clock}
	defer f.close()
	if corpus.stats.Links == 0 {
		err := fmt.Errorf("generation %d: %w: %d nodes, none of which has a neighbour", g, ErrTooFew, corpus.stats.Nodes)
		// Resumed on this cut it would fail for ever; forgotten, the next
		// attempt begins on a cut that may have links.
		return nil, errors.Join(err, b.Store.Delete(ctx, docKey(g)))
	}
	log.Info("cut read", "nodes", corpus.stats.Nodes, "links", corpus.stats.Links)
	f.checkMemory()

	stages := []struct {
		run   func() error
		until Until
	}{
		{f.split, -1}, {f.vectorize, -1}, {f.project, -1}, {f.cluster, -1}, {f.mapParent, -1}, {f.writeDataset, UntilDataset},
		{f.trainEncoder, UntilEncoder}, {f.evaluateText, -1}, {f.encode, -1}, {f.evaluate, -1}, {f.writeEmbeddings, -1},
	}
	doc.Graph, doc.GraphHash = corpus.stats, source.Hash()
	for _, s := range stages {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := s.run(); err != nil {
			return nil, fmt.Errorf("generation %d: %w", g, err)
		}
		if s.until == until {
			clock.end()
			return doc, doc.save(ctx, b.Store)
		}
	}
	clock.end()
	doc.Stages, doc.Status, doc.Finished = clock.times, Ready, b.Now().UTC()
	if err := doc.save(ctx, b.Store); err != nil {
		return nil, err
	}
	log.Info("generation ready", "encoder", doc.Encoder.Kind, "nodes", doc.Graph.Nodes)
	return doc, nil
}

// begin returns generation g's document, writing it if this is the beginning.
func (b *Builder) begin(ctx context.Context, g int64, source Source) (*Doc, error) {
	doc, err := Load(ctx, b.Store, g)
	switch {
	case err == nil:
		if doc.Status == Building && !sameCut(doc.Cut, source.Cut()) {
			return nil, fmt.Errorf("generation %d was begun on another cut; resume it with its own", g)
		}
		return doc, nil
	case !errors.Is(err, ErrNone):
		return nil, err
	}
	doc = &Doc{Format: DocFormat, Generation: g, Status: Building, Cut: source.Cut(),
		Settings: b.Settings, Created: b.Now().UTC()}
	switch parent, err := Current(ctx, b.Store); {
	case err == nil:
		doc.Parent = parent.Generation
	case !errors.Is(err, ErrNone):
		return nil, err
	}
	return doc, doc.create(ctx, b.Store)
}

func sameCut(a, b map[int]int64) bool {
	if len(a) != len(b) {
		return false
	}
	for shard, seq := range a {
		if other, ok := b[shard]; !ok || other != seq {
			return false
		}
	}
	return true
}
