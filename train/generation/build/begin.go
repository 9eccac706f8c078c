package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	"giantstream/featurize/pifa"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/fit"
	"giantstream/train/objectives/together"
)

// Request says what a generation that begins is to be, and how it is divided. A build that is resumed keeps what it
// began with.
type Request struct {
	Settings fit.Settings
	// Gate decides about a generation that is worse than text alone; "" is GateWarn.
	Gate generation.Gate
	// Canary: only the canary topic gets the generation, until people promote it. The first generation is no canary.
	Canary bool
	// NewSpace: the embeddings need not be comparable with those of the generation before.
	NewSpace bool
	// Afresh: nothing that the generation before has learned enters this one. It is only turned to where that one is.
	Afresh bool
	// Because is why the generation is built, "" for unsaid. The document keeps it.
	Because string

	// Shards of the commit log.
	Shards int
	// Partitions is a power of two, 0 for one that suits the graph. Sample is Plan.Sample, 0 for DefaultSample.
	Partitions, Sample int
	// AtATime is how many tasks one process does at a time; 0 is 1. They share its memory.
	AtATime int
	// Trainers is how many processes train the encoder together, 1 to together.Slices; 0 is 1.
	Trainers int
}

// Begin begins the next generation, or returns the plan of the one that is unfinished. The worker's store should be
// fenced by the lease of those who build.
func (w *Worker) Begin(ctx context.Context, r Request) (stages.Plan, error) {
	if err := r.Settings.Validate(); err != nil {
		return stages.Plan{}, err
	}
	unfinished, g, err := generation.Next(ctx, w.Store)
	if err != nil {
		return stages.Plan{}, err
	}
	var cut map[int]int64
	if unfinished != nil {
		if plan, err := stages.LoadPlan(ctx, w.Store, g); !errors.Is(err, stages.ErrNoPlan) {
			return plan, err
		}
		cut = unfinished.Cut
	}
	log, err := w.Log(ctx, cut)
	if err != nil {
		return stages.Plan{}, err
	}
	size, err := log.Size(ctx)
	if err != nil {
		return stages.Plan{}, err
	}
	size.Dim, size.Memory, size.AtATime = r.Settings.EmbeddingDim, w.MemoryLimit, max(1, r.AtATime)
	plan, err := stages.NewPlan(g, r.Shards, size, r.Partitions, r.Sample)
	if err != nil {
		return stages.Plan{}, err
	}
	if r.Trainers < 0 || r.Trainers > together.Slices {
		return stages.Plan{}, fmt.Errorf("%d processes that train: it must be 1 to %d, the slices of a batch",
			r.Trainers,
			together.Slices)
	}
	if !size.Orders {
		r.Settings.FromOrders = nil
	}
	doc, err := w.document(ctx, g, log.Cut(), r)
	if err != nil {
		return stages.Plan{}, err
	}
	if doc.Complete() {
		return stages.Plan{}, fmt.Errorf("generation %d was built in the meantime", g)
	}
	if fit.KindOf(doc.Settings.Encoder).InSteps {
		plan.Trainers = r.Trainers
	}
	plan.Orders = doc.Settings.FromOrders != nil && doc.Settings.FromOrders.MaxPartners > 0
	plan.Behaviour = plan.Orders && fit.KindOf(doc.Settings.Encoder).Items
	plan.GoesWith = plan.Orders
	if kind := pifa.Kind(doc.Settings.LabelFeatures); kind != pifa.PIFA {
		plan.Features = kind
	}
	plan.Fill, plan.Parent = doc.Settings.MissingText == fit.Neighbours, doc.Parent != 0
	plan.Averaged = doc.AveragedWith != 0
	if doc.Settings.Relations != nil {
		plan.Weigh()
	}
	if size.Vectors && fit.KindOf(doc.Settings.Encoder).Items {
		plan.View()
	}
	return plan.Create(ctx, w.Store)
}

// document returns generation g's document. If there is none, it writes one: a build of that cut begins.
func (w *Worker) document(ctx context.Context, g int64, cut map[int]int64, r Request) (*generation.Doc, error) {
	doc, err := generation.Load(ctx, w.Store, g)
	if err == nil || !errors.Is(err, generation.ErrNone) {
		return doc, err
	}
	// Once there is a document, its generation is finished with its settings.
	if err := r.Settings.CheckEncoder(); err != nil {
		return nil, err
	}
	doc = &generation.Doc{Format: generation.DocFormat, Generation: g, Status: generation.Building,
		Cut: maps.Clone(cut), Settings: r.Settings, QualityGate: cmp.Or(r.Gate, generation.GateWarn),
		Because: r.Because, Created: w.Now().UTC()}
	latest, err := generation.Newest(ctx, w.Store)
	if err != nil {
		return nil, err
	}
	if parent := latest.Current; parent != nil {
		doc.Inherit(parent)
		doc.Canary = r.Canary
		if !r.NewSpace {
			doc.KeepSpaceOf = parent.Generation
		}
		if !r.NewSpace && !r.Afresh {
			doc.AveragedWith, doc.LearnedSince = parent.Generation, parent.LearnedFrom()
		}
	}
	return doc, doc.Create(ctx, w.Store)
}
