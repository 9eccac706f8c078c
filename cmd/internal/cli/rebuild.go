package cli

import (
	"context"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/wiring"
	"giantstream/sink"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
)

func rebuildCommand(a *command.App) *cobra.Command {
	return makingCommand(a, &making{until: stages.Finish, before: beginAnew}, &cobra.Command{Use: "rebuild",
		Short: "Make a new generation now, with the settings of the configuration",
		Long: `Make a new generation of everything committed so far, whether enough has changed
or not, with the encoder and the other settings that the configuration and the
flags name now. A generation that was begun with other settings is dropped. A
running pipeline takes the new one up and publishes it; without one, 'giantstream
run --until-idle' does.

rebuild changes no row. Records that were read with another mapping (ingest.*,
kafka.topics) keep what it made of them: 'giantstream remap' reads them again.`,
		Example: "  giantstream rebuild -c pipeline.yaml\n" +
			"  giantstream rebuild --store ./out --encoder linear --set embedding.dim=128"})
}

// beginAnew drops an unfinished generation of other settings.
func beginAnew(ctx context.Context, p *command.Pipeline, store sink.Store) error {
	unfinished, _, err := generation.Next(ctx, store)
	if err != nil || unfinished == nil {
		return err
	}
	changed := wiring.ChangedSettings(unfinished, p.Config)
	if len(changed) == 0 {
		return nil // it is finished instead
	}
	p.Log.Warn("an unfinished generation was begun with other settings and is dropped",
		"generation", unfinished.Generation, "differences", changed)
	return generation.Discard(ctx, store, unfinished)
}
