package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/service/refreshing"
	"giantstream/cmd/internal/wiring"
	"giantstream/sink"
	"giantstream/sink/lease"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
)

// stageCommand returns a command that runs the build of a generation up to a stage. Each of the
// three commands resumes where the one before stopped: fit, train and embed are one whole build. A
// command holds the refresh lease, as a running pipeline does while it builds.
//
// before is called with the lease, before the build begins.
func (a *app) stageCommand(until generation.Until, use, short, long, example string,
	before ...func(context.Context, *pipeline, sink.Store) error) *cobra.Command {
	var (
		flags   pipelineFlags
		encoder encoderFlags
		asJSON  bool
	)
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Example: example, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var doc *generation.Doc
			err := a.holding(cmd.Context(), &flags, &encoder, until != generation.UntilDataset,
				func(ctx context.Context, pipe *pipeline, store sink.Store) (err error) {
					for _, do := range before {
						if err := do(ctx, pipe, store); err != nil {
							return err
						}
					}
					doc, err = pipe.builder(store).BuildNext(ctx, pipe.source, until)
					return err
				})
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(a.out, doc)
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
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the generation's document as JSON")
	return cmd
}

// holding opens the pipeline, and calls do while it holds the lease of those who build, with a store whose writes
// check the lease. device: do trains.
func (a *app) holding(ctx context.Context, flags *pipelineFlags, encoder *encoderFlags, device bool,
	do func(context.Context, *pipeline, sink.Store) error) error {
	pipe, err := a.open(ctx, flags, encoder.apply)
	if err != nil {
		return err
	}
	if device {
		closeDevice, err := a.openDevice(pipe.workplace)
		if err != nil {
			return err
		}
		defer closeDevice()
	}
	held, err := refreshing.HoldRefresh(ctx, pipe.store, pipe.log)
	if err != nil {
		return err
	}
	ctx, release := held.Keep(ctx)
	defer release()
	err = do(ctx, pipe, held.Store())
	pipe.progress.Done()
	if lost := context.Cause(ctx); err != nil && errors.Is(lost, lease.ErrLost) {
		return lost
	}
	return err
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

func (a *app) rebuild() *cobra.Command {
	return a.stageCommand(generation.UntilReady, "rebuild",
		"Make a new generation now, with the settings of the configuration",
		`Make a new generation of everything committed so far, whether enough has changed
or not, with the encoder and the other settings that the configuration and the
flags name now. A generation that was begun with other settings is dropped. A
running pipeline takes the new one up and publishes it; without one, 'giantstream
run --until-idle' does.

rebuild changes no row. Records that were read with another mapping (ingest.*,
kafka.topics) keep what it made of them: to read them again, start a new
pipeline on a store of its own and backfill it.`,
		"  giantstream rebuild -c pipeline.yaml\n"+
			"  giantstream rebuild --store ./out --encoder linear --set embedding.dim=128",
		a.beginAnew)
}

// beginAnew says what a rebuild cannot change, and drops an unfinished generation of other settings.
func (a *app) beginAnew(ctx context.Context, p *pipeline, store sink.Store) error {
	if differences := mappingDifferences(p); len(differences) > 0 {
		p.log.Warn("a rebuild cannot repair this: records are read with other settings than the configuration has. "+
			"To read them again, start a new pipeline on a store of its own and backfill it",
			"differences", differences)
	}
	unfinished, _, err := generation.Next(ctx, store)
	if err != nil || unfinished == nil {
		return err
	}
	changed := wiring.ChangedSettings(unfinished, p.cfg)
	if len(changed) == 0 {
		return nil // it is finished instead
	}
	p.log.Warn("an unfinished generation was begun with other settings and is dropped",
		"generation", unfinished.Generation, "differences", changed)
	return generation.Discard(ctx, store, unfinished)
}

// mappingDifferences returns the settings of the graph in which the configuration differs from the store. A
// directory without a configuration has none: its mapping was in the flags of 'run'.
func mappingDifferences(p *pipeline) []string {
	if !p.configured || p.id.Settings == nil {
		return nil
	}
	return commitlog.Difference(p.id.Settings, wiring.GraphSettings(p.cfg))
}
