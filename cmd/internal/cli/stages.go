package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/service"
	"giantstream/sink/lease"
	"giantstream/train/generation"
)

// stageCommand returns a command that runs the build of a generation up to a stage. Each of the
// three commands resumes where the one before stopped: fit, train and embed are one whole build. A
// command holds the refresh lease, as a running pipeline does while it builds.
func (a *app) stageCommand(until generation.Until, use, short, long, example string) *cobra.Command {
	var (
		flags   pipelineFlags
		encoder encoderFlags
	)
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Example: example, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			pipe, err := a.open(ctx, &flags, encoder.apply)
			if err != nil {
				return err
			}
			if until != generation.UntilDataset {
				closeDevice, err := a.openDevice(pipe.workplace)
				if err != nil {
					return err
				}
				defer closeDevice()
			}
			held, err := service.HoldRefresh(ctx, pipe.store, pipe.log)
			if err != nil {
				return err
			}
			ctx, release := held.Keep(ctx)
			defer release()
			doc, err := pipe.builder(held.Store()).BuildNext(ctx, pipe.source, until)
			pipe.progress.Done()
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
			if doc.Complete() {
				p.line("")
				printEvaluation(p, doc)
				printGate(p, doc)
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
		"  giantstream train --store ./out --encoder linear\n"+
			"  giantstream train --store ./out --encoder bert --model ./all-MiniLM-L6-v2")
}

func (a *app) embed() *cobra.Command {
	return a.stageCommand(generation.UntilReady, "embed",
		"Embed every node and finish the generation",
		`Do what train does, where that is not done yet; then evaluate, embed every node
and mark the generation ready. A running pipeline picks it up and publishes it.`,
		"  giantstream embed --store ./out")
}
