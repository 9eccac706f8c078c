package fit_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"time"

	"giantstream/featurize/labeltree"
	"giantstream/internal/ambient"
	"giantstream/train/generation/fit"
	"giantstream/train/internal/graphtest"
)

// All stages of a generation, from a graph to the evaluation of an encoder. Errors of stages are
// handled by must for brevity.
func Example() {
	ctx := context.Background()
	g := graphtest.Topics(300, 4, 8, 1)
	s := fit.Settings{Profile: "default", MaxDegree: 1000, ProjectionDim: 32, EmbeddingDim: 16, Weighting: "sum",
		LabelFeatures: "pifa", Encoder: "linear", Seed: 1, Holdout: 0.1, EvalSeed: 1}
	r := fit.Resources{Progress: ambient.OrDiscard(nil), Log: slog.New(slog.DiscardHandler), Now: time.Now}

	texts := fit.NewTexts(r)
	order := make([]int32, g.Len())
	for i, text := range g.Texts {
		order[i] = int32(i)
		if err := texts.Append(text); err != nil {
			log.Fatal(err)
		}
	}
	if err := texts.Arrange(order); err != nil {
		log.Fatal(err)
	}

	known, hidden := fit.HideEdges(g, s)
	in := fit.Inputs{Graph: known, Texts: texts}
	in.Vectorizer = must(fit.Vectorizer(ctx, texts, s, r))
	in.Features = must(fit.Vectorize(ctx, in.Vectorizer, texts, r))
	in.Projection = must(fit.Projection(in.Features, s, r))
	in.Dim = min(s.EmbeddingDim, in.Projection.Dim())
	in.Projected = must(fit.Project(ctx, in.Projection, in.Features, r))
	labels, clustered, err := fit.LabelFeatures(known, in.Projected, in.Dim, s, 0)
	if err != nil {
		log.Fatal(err)
	}
	in.Labels = labels
	in.Tree = must(fit.BuildTree(must(labeltree.Dense(clustered, in.Dim)), s, 0))
	trained := must(fit.Train(ctx, s.Encoder, fit.Training{Inputs: in, Settings: s, Resources: r,
		Journal: fit.NoJournal{}}))
	vectors := must(fit.Embed(ctx, trained.Encoder, texts, r.Progress))
	exam := fit.Exam{Known: known, Hidden: hidden}
	e := must(exam.Evaluate(s.Encoder, vectors, trained.Encoder.Dim(), s, 0, r.Log))
	fmt.Println(e.Encoder, e.Links.AUC > 0.7)
	if err := texts.Close(); err != nil {
		log.Fatal(err)
	}
	// Output: linear true
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
