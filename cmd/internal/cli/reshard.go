package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/sink"
	"giantstream/stream/commitlog"
	"giantstream/stream/reshard"
)

func (a *app) reshard() *cobra.Command {
	var (
		flags            pipelineFlags
		from             string
		shards           int
		acceptLoss       []string
		abort, removeOld bool
		asJSON           bool
	)
	cmd := &cobra.Command{
		Use:   "reshard",
		Short: "Write the store of a stopped pipeline again, with another number of shards",
		Long: `Give a pipeline another number of shards, which is the number of partitions of
its topics. The configuration is that of afterwards: its store is an empty folder
or an unused prefix, its mirror topic has a new name, and its nodes and edges
topics have as many partitions as there are to be shards. They are new topics, or
those of before with partitions added. --from names the store of before.

All workers are stopped meanwhile. Topics that are left must have been read to
their ends ('giantstream run --until-idle' with the configuration of before).

The rows, the states, the generation that is served and what is known to be
published go to the new store. The graph of both stores is computed from their
rows, and must have the same hash. The store of before stays as it is, but for a
mark: no worker starts on it any more. A run that was broken off is begun again
by the same command. --abort takes back one that is not complete; --remove-old
removes the store of before after one that is.`,
		Example: `  giantstream reshard -c afterwards.yaml --from s3://bucket/catalog --shards 8
  giantstream run -c afterwards.yaml
  giantstream reshard -c afterwards.yaml --from s3://bucket/catalog --remove-old`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case from == "":
				return usageError{errors.New("name the store of before with --from")}
			case abort && removeOld:
				return usageError{errors.New("give --abort or --remove-old, not both")}
			}
			cfg, err := flags.load()
			if err != nil {
				return err
			}
			if shards > 0 {
				cfg.Shards = shards
				if err := check(cfg); err != nil {
					return err
				}
			}
			old, err := openFrom(cmd.Context(), cfg, from)
			if err != nil {
				return err
			}
			w, err := a.workplace(cmd.Context(), cfg, "")
			if err != nil {
				return err
			}
			switch {
			case abort:
				if err := commitlog.AbortReshard(cmd.Context(), old, w.store); err != nil {
					return err
				}
				fmt.Fprintf(a.out, "taken back: workers may run on %s again\n", old.URL())
				return nil
			case removeOld:
				n, err := commitlog.RemoveLeft(cmd.Context(), old, w.store)
				if err != nil {
					return err
				}
				fmt.Fprintf(a.out, "%s objects removed from %s\n", console.Count(n), old.URL())
				return nil
			}
			result, err := a.runReshard(cmd.Context(), w, old, acceptLoss)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(a.out, result)
			}
			return a.printReshard(result)
		},
	}
	flags.register(cmd)
	cmd.Flags().StringVar(&from, "from", "", "the `STORE` that the pipeline has now")
	cmd.Flags().IntVar(&shards, "shards", 0, "how many shards there are to be (default: the configuration's)")
	cmd.Flags().StringSliceVar(&acceptLoss, "accept-loss", nil,
		"`topics` of before that are gone, of which it cannot be told whether all was read")
	cmd.Flags().BoolVar(&abort, "abort", false, "take back what is not complete")
	cmd.Flags().BoolVar(&removeOld, "remove-old", false, "remove the store of before, once the new one is complete")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// openFrom opens the store of before, with the credentials of the configuration.
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

func (a *app) runReshard(ctx context.Context, w *workplace, from sink.Store, acceptLoss []string) (
	_ *reshard.Result, err error) {
	c, done, err := wiring.Attach(ctx, w.cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	o, err := wiring.ReshardOptions(ctx, w.cfg, c, from, w.store, w.log)
	if err != nil {
		return nil, err
	}
	o.Dir, o.AcceptLoss, o.Progress = filepath.Join(w.cfg.StateDir, "reshard"), acceptLoss, w.progress
	result, err := reshard.Run(ctx, o)
	w.progress.Done()
	return result, err
}

func (a *app) printReshard(r *reshard.Result) error {
	p := &printer{out: a.out}
	if r.Already {
		p.line("%s was complete already. Start workers with it.", r.Into)
		return p.err
	}
	p.line("%s now has %d shards, from %d in %s", r.Into, r.Shards, r.Before, r.From)
	p.line("  %s nodes and %s edges; both stores have the graph %s", console.Count(r.Nodes), console.Count(r.Edges),
		r.Hash)
	if r.Generation > 0 {
		p.line("  generation %d goes on being served", r.Generation)
	}
	if r.Waiting > 0 {
		p.line("  %s records are still to be read from the partitions of before. Those whose key belongs to another "+
			"partition now become dead letters: 'giantstream dlq replay' sends them to the right one",
			console.Count(r.Waiting))
	}
	p.line("Start workers with the new store and an empty state_dir.")
	return p.err
}
