package build

import (
	"context"

	"giantstream/train/generation"
	"giantstream/train/generation/build/embeddings"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/labels"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/training"
	"giantstream/train/generation/build/work"
)

// finishGeneration writes the generation's document, which makes it one like any other, and removes what the tasks
// have left.
func finishGeneration(ctx context.Context, t *work.Task) error {
	if now, err := generation.Load(ctx, t.Store, t.Plan.Generation); err != nil || now.Complete() {
		if err != nil {
			return err
		}
		return generation.RemoveTasks(ctx, t.Store, t.Plan.Generation)
	}
	doc := *t.Doc
	for _, describe := range []func(context.Context, *work.Build, *generation.Doc) error{graph.Describe,
		graph.DescribeComplements, labels.Describe, training.Describe, embeddings.DescribeQuality,
		embeddings.DescribeEmbeddings} {
		if err := describe(ctx, t.Build, &doc); err != nil {
			return err
		}
	}
	if err := doc.Finish(ctx, t.Store, t.StageTimes(t.Now()), t.Now()); err != nil {
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
			log.Warn("the quality gate warns of the generation, and it is served all the same", "because", warning)
		}
	}
	return nil
}

// describe stores the document of a generation that is not finished, with the figures of the stages that are done.
func (w *Worker) describe(ctx context.Context, plan stages.Plan) (*generation.Doc, error) {
	b, err := w.openBuild(ctx, plan.Generation)
	if err != nil || b == nil {
		return nil, err
	}
	doc := *b.Doc
	for _, part := range []struct {
		stage    string
		describe func(context.Context, *work.Build, *generation.Doc) error
	}{{stages.Link, graph.Describe}, {stages.Dataset, labels.Describe}, {stages.Encoder, training.Describe}} {
		s, _ := plan.Find(part.stage)
		for _, t := range plan.TasksOf(s) {
			if done, err := w.Done(ctx, t); err != nil || !done {
				return &doc, doc.Save(ctx, w.Store)
			}
		}
		if err := part.describe(ctx, b, &doc); err != nil {
			return nil, err
		}
	}
	return &doc, doc.Save(ctx, w.Store)
}
