package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/service"
	"giantstream/sink/lease"
	"giantstream/train/generation"
)

// stageCommand runs a generation's build up to a point. The three commands
// resume one another: fit, then train, then embed is one whole build. Each
// holds the refresh lease, as a running pipeline does while it builds.
func (a *app) stageCommand(until generation.Until, use, short, long, example string) *cobra.Command {
	var (
		flags   pipelineFlags
		encoder encoderFlags
	)
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Example: example, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			pipe, err := flags.open(ctx)
			if err != nil {
				return err
			}
			cfg, store := pipe.cfg, pipe.store
			encoder.apply(cfg)
			if err := check(cfg); err != nil {
				return err
			}
			log, err := a.logger("", cfg.Log.Format)
			if err != nil {
				return err
			}
			service.Limit(cfg)
			progress := console.New(a.err, log)
			held, err := service.HoldRefresh(ctx, store, log)
			if err != nil {
				return err
			}
			ctx, release := held.Keep(ctx)
			defer release()
			b := service.NewBuilder(cfg, held.Store(), progress, log)
			doc, err := b.BuildNext(ctx, func(ctx context.Context, at map[int]int64) (generation.Source, error) {
				return service.SourceAt(ctx, store, pipe.id.Shards, at)
			}, until)
			progress.Done()
			if lost := context.Cause(ctx); err != nil && errors.Is(lost, lease.ErrLost) {
				return lost
			}
			if err != nil {
				return err
			}
			p := &printer{out: a.out}
			p.heading("Generation %d is %s", doc.Generation, doc.Status)
			printGraph(p, doc)
			printTree(p, doc)
			if doc.Status == generation.Ready {
				p.line("")
				printEvaluation(p, doc)
			}
			return p.err
		},
	}
	flags.register(cmd)
	encoder.register(cmd)
	return cmd
}

func (a *app) fit() *cobra.Command {
	return a.stageCommand(generation.UntilDataset, "fit",
		"Fit vectorizer, projection and label tree; write the training set",
		`Begin a new generation on everything committed so far (or take up the unfinished
one), and stop after its training set is written, for example to train on it
with a trainer of your own.`,
		"  giantstream fit --store ./out")
}

func (a *app) train() *cobra.Command {
	return a.stageCommand(generation.UntilEncoder, "train",
		"Train the encoder of the unfinished generation",
		"Do what fit does, where that is not done yet, and train the encoder.",
		"  giantstream train --store ./out --encoder linear\n  giantstream train --store ./out --encoder bert --model ./all-MiniLM-L6-v2")
}

func (a *app) embed() *cobra.Command {
	return a.stageCommand(generation.UntilReady, "embed",
		"Embed every node and finish the generation",
		`Do what train does, where that is not done yet; then evaluate, embed every node
and mark the generation ready. A running pipeline picks it up and publishes it.`,
		"  giantstream embed --store ./out")
}
