package operate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/sink"
	"giantstream/stream/commitlog"
	"giantstream/stream/reshard"
)

// Reshard is 'giantstream reshard'.
func Reshard(a *command.App) *cobra.Command {
	var f reshardFlags
	cmd := &cobra.Command{
		Use:   "reshard",
		Short: "Write a stopped pipeline's store again: other shards, or without forgotten nodes",
		Long: `Give a pipeline another number of shards, which is the number of partitions of
its topics. The configuration is that of afterwards: its store is an empty folder
or an unused prefix, its mirror topic has a new name, and its topics of nodes,
edges and orders have as many partitions as there are to be shards. They are new
topics, or those of before with partitions added. --from names the store of before.

All workers are stopped meanwhile. Topics that are left must have been read to
their ends ('giantstream run --until-idle' with the configuration of before).

The rows, the states, the generation that is served and what is known to be
published go to the new store. The graph of both stores is computed from their
rows, and must have the same hash.

--forget names a file of ids, one a line, of nodes that 'giantstream forget' has
deleted: the new store has nothing of them, nor have its orders. --forget-deleted takes all nodes that
were deleted, with all links to them, before the generation that is served was
built. The number of shards and the topics, but for the mirror's, may then be
those of before.

The store of before stays as it is, but for a
mark: no worker starts on it any more. A run that was broken off is begun again
by the same command. --abort takes back one that is not complete; --remove-old
removes the store of before after one that is.`,
		Example: `  giantstream reshard -c afterwards.yaml --from s3://bucket/catalog --shards 8
  giantstream run -c afterwards.yaml
  giantstream reshard -c afterwards.yaml --from s3://bucket/catalog --remove-old
  giantstream reshard -c afterwards.yaml --from ./store --forget ids.txt`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), a) },
	}
	f.register(cmd)
	return cmd
}

type reshardFlags struct {
	pipeline         command.PipelineFlags
	from, forget     string
	shards           int
	acceptLoss       []string
	forgetDeleted    bool
	abort, removeOld bool
	asJSON           bool
}

func (f *reshardFlags) register(cmd *cobra.Command) {
	f.pipeline.Register(cmd)
	cmd.Flags().StringVar(&f.from, "from", "", "the `STORE` that the pipeline has now")
	cmd.Flags().IntVar(&f.shards, "shards", 0, "how many shards there are to be (default: the configuration's)")
	cmd.Flags().StringSliceVar(&f.acceptLoss, "accept-loss", nil,
		"`topics` of before that are gone, of which it cannot be told whether all was read")
	cmd.Flags().StringVar(&f.forget, "forget", "", "a `FILE` of ids, one a line, of deleted nodes to leave out")
	cmd.Flags().BoolVar(&f.forgetDeleted, "forget-deleted", false,
		"leave out all nodes that were deleted before the generation that is served was built")
	cmd.Flags().BoolVar(&f.abort, "abort", false, "take back what is not complete")
	cmd.Flags().BoolVar(&f.removeOld, "remove-old", false, "remove the store of before, once the new one is complete")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
}

func (f *reshardFlags) run(ctx context.Context, a *command.App) error {
	switch {
	case f.from == "":
		return command.UsageError(errors.New("name the store of before with --from"))
	case f.abort && f.removeOld:
		return command.UsageError(errors.New("give --abort or --remove-old, not both"))
	case f.forget != "" && f.forgetDeleted:
		return command.UsageError(errors.New("give --forget or --forget-deleted, not both"))
	}
	cfg, err := f.pipeline.Load()
	if err != nil {
		return err
	}
	if f.shards > 0 {
		cfg.Shards = f.shards
		if err := command.CheckConfig(cfg); err != nil {
			return err
		}
	}
	old, err := openFrom(ctx, cfg, f.from)
	if err != nil {
		return err
	}
	w, err := a.OpenWorkplace(ctx, cfg, "")
	if err != nil {
		return err
	}
	switch {
	case f.abort:
		if err := commitlog.AbortReshard(ctx, old, w.Store); err != nil {
			return err
		}
		fmt.Fprintf(a.Out, "taken back: workers may run on %s again\n", old.URL())
		return nil
	case f.removeOld:
		return removeLeft(ctx, a, w, old)
	}
	o := reshard.Options{AcceptLoss: f.acceptLoss, ForgetDeleted: f.forgetDeleted}
	if f.forget != "" {
		if o.Forget, err = command.ReadIDs(nil, f.forget); err != nil {
			return err
		}
	}
	result, err := runReshard(ctx, a, w, old, o)
	if err != nil {
		return err
	}
	if f.asJSON {
		return command.WriteJSON(a.Out, result)
	}
	return printReshard(a, result)
}

// removeLeft removes the old store, but for the folders that workers with the new configuration use.
func removeLeft(ctx context.Context, a *command.App, w *command.Workplace, old sink.Store) error {
	keep, err := wiring.KeysOfFolders(old.URL(), wiring.ScannedFolders(w.Config))
	if err != nil {
		return err
	}
	removed, kept, err := commitlog.RemoveLeft(ctx, old, w.Store, keep)
	if err != nil {
		return err
	}
	p := &command.Printer{Out: a.Out}
	p.Line("%s objects removed from %s", console.Count(removed), old.URL())
	if kept > 0 {
		p.Line("%s of brokers and states stay there: delete those that no kafka.data_dir and no state_dir names",
			command.Plural(kept, "file"))
	}
	return p.Err
}

// openFrom opens the store that a reshard reads, with the credentials of the configuration.
func openFrom(ctx context.Context, cfg *config.Config, from string) (sink.Store, error) {
	at := *cfg
	at.Store = from
	if dir, ok := wiring.StoreDir(from); ok {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(dir); err != nil {
			return nil, fmt.Errorf("there is no store at %s: %w", dir, err)
		}
		at.Store = wiring.DirURL(dir)
	}
	return wiring.OpenStore(ctx, &at)
}

// runReshard takes from asked what people choose.
func runReshard(ctx context.Context, a *command.App, w *command.Workplace, from sink.Store, asked reshard.Options) (
	_ *reshard.Result, err error) {
	c, done, err := wiring.Attach(ctx, w.Config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	o, err := wiring.ReshardOptions(ctx, w.Config, c, from, w.Store, w.Log)
	if err != nil {
		return nil, err
	}
	o.Dir, o.Progress = filepath.Join(w.Config.StateDir, "reshard"), w.Progress
	o.AcceptLoss, o.Forget, o.ForgetDeleted = asked.AcceptLoss, asked.Forget, asked.ForgetDeleted
	result, err := reshard.Run(ctx, o)
	w.Progress.Done()
	return result, err
}

func printReshard(a *command.App, r *reshard.Result) error {
	p := &command.Printer{Out: a.Out}
	if r.Already {
		p.Line("%s was complete already. Start workers with it.", r.Into)
		return p.Err
	}
	p.Line("%s now has %d shards, from %d in %s", r.Into, r.Shards, r.Before, r.From)
	p.Line("  %s nodes and %s edges; both stores have the graph %s", console.Count(r.Nodes), console.Count(r.Edges),
		r.Hash)
	if r.Forgotten > 0 {
		p.Line("  nothing of %s forgotten nodes is in it. Remove the old store with --remove-old, and look what is "+
			"left elsewhere with 'giantstream forget --check'", console.Count(r.Forgotten))
	}
	if r.Deleted > 0 {
		p.Line("  %s deleted nodes stay for the next time: they or links to them were not deleted yet when the "+
			"generation was built, or that is not published", console.Count(r.Deleted))
	}
	if r.Generation > 0 {
		p.Line("  generation %d goes on being served", r.Generation)
	}
	if r.Waiting > 0 {
		p.Line("  %s records are still to be read from the partitions of before. Those whose key belongs to another "+
			"partition now become dead letters: 'giantstream dlq replay' sends them to the right one",
			console.Count(r.Waiting))
	}
	p.Line("Start workers with the new store and an empty state_dir.")
	return p.Err
}
