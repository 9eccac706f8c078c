package vocabulary

import (
	"container/heap"
	"context"
	"errors"
	"fmt"

	"giantstream/featurize/tfidf"
	"giantstream/train/generation"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/fit"
)

func tfidfOptions(ctx context.Context, t *work.Task) (tfidf.Options, graph.Numbering, error) {
	x, err := graph.LoadNumbering(ctx, t.Build)
	if err != nil {
		return tfidf.Options{}, x, err
	}
	o, err := fit.VectorizerOptions(t.Doc.Settings, x.Nodes())
	return o, x, err
}

// Count counts the documents of a partition that hold each n-gram.
func Count(ctx context.Context, t *work.Task) error {
	o, _, err := tfidfOptions(ctx, t)
	if err != nil {
		return err
	}
	fitter, err := tfidf.NewFitter(o)
	if err != nil {
		return err
	}
	if err := graph.EachTextBlock(ctx, t.Build, t.Partition, func(_ int, texts []string) error {
		fitter.AddAll(texts, 1)
		return ctx.Err()
	}); err != nil {
		return err
	}
	out := t.NewSections(t.Plan.Partitions)
	defer out.Close() //nolint:errcheck // a temporary file
	var b []byte
	for g := range fitter.NGrams() {
		b = appendNGram(b[:0], g)
		if err := out.Add(graph.PartitionOf(keyOf(g), t.Plan.Partitions), b); err != nil {
			return err
		}
	}
	return t.PutSections(ctx, "ngrams", out)
}

// Merge adds up what the partitions have counted of a share of the n-grams, and keeps those that may be features. It
// holds the share's counts in memory.
func Merge(ctx context.Context, t *work.Task) error {
	o, x, err := tfidfOptions(ctx, t)
	if err != nil {
		return err
	}
	chooser, err := tfidf.NewChooser(o, x.Nodes())
	if err != nil {
		return err
	}
	var all runs
	for p := range t.Plan.Partitions {
		from, err := t.OutputsOf(ctx, stages.Count, p)
		if err != nil {
			return err
		}
		b, err := from.ReadSection(ctx, "ngrams", t.Partition)
		if err != nil {
			return err
		}
		if r := (&run{Decoder: sections.Decoder{Rest: b}}); r.More() {
			r.advance()
			all = append(all, r)
		}
	}
	heap.Init(&all)
	for len(all) > 0 {
		first := *all[0]
		df := 0
		for len(all) > 0 && all[0].compare(&first) == 0 {
			r := all[0]
			df += r.df
			if r.More() {
				r.advance()
				heap.Fix(&all, 0)
			} else {
				heap.Pop(&all)
			}
			if r.Err != nil {
				return fmt.Errorf("counts of n-grams: %w", r.Err)
			}
		}
		if !chooser.Wants(first.part, df) {
			continue
		}
		chooser.Add(tfidf.NGram{Part: first.part, Word: string(first.word), Next: string(first.next),
			Runes: first.runes, DF: df})
	}
	out := t.NewSections(1)
	defer out.Close() //nolint:errcheck // a temporary file
	for g := range chooser.Chosen() {
		if err := out.Add(0, appendNGram(nil, g)); err != nil {
			return err
		}
	}
	return t.PutSections(ctx, "chosen", out)
}

// FitVectorizer chooses the features among those that the shares have kept.
func FitVectorizer(ctx context.Context, t *work.Task) error {
	o, x, err := tfidfOptions(ctx, t)
	if err != nil {
		return err
	}
	chooser, err := tfidf.NewChooser(o, x.Nodes())
	if err != nil {
		return err
	}
	for p := range t.Plan.Partitions {
		from, err := t.OutputsOf(ctx, stages.Merge, p)
		if err != nil {
			return err
		}
		b, err := from.ReadSection(ctx, "chosen", 0)
		if err != nil {
			return err
		}
		for d := (sections.Decoder{Rest: b}); d.More(); {
			g := readNGram(&d)
			if d.Err != nil {
				return from.Explain(d.Err)
			}
			chooser.Add(g)
		}
	}
	model, err := chooser.Fit()
	if errors.Is(err, tfidf.ErrNoText) {
		return errAlike(t, x, err)
	}
	if err != nil {
		return err
	}
	return t.Put(ctx, "vectorizer", t.ArtifactKey(generation.VectorizerName), model.Write)
}

// errAlike is the error of texts without features.
func errAlike(t *work.Task, x graph.Numbering, err error) error {
	return fmt.Errorf("%w: of the texts of %d, no words are in some and not in nearly all: they are empty, alike "+
		"or have nothing in common (%w)", generation.ErrTooFew, x.Nodes(), err)
}

// LoadVectorizer reads the vectorizer, once for all tasks of this process.
func LoadVectorizer(ctx context.Context, b *work.Build) (*tfidf.Model, error) {
	return work.ShareArtifact(ctx, b, stages.Vectorizer, "vectorizer", tfidf.Read)
}
