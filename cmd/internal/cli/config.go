package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/wiring"
	"giantstream/config"
)

func (a *app) config() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check a configuration, or print a commented example",
		Example: "  giantstream config example > pipeline.yaml\n  giantstream config check pipeline.yaml"}
	cmd.AddCommand(&cobra.Command{
		Use:     "example",
		Short:   "Print a configuration file with every field explained",
		Example: "  giantstream config example > pipeline.yaml",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.out.Write(config.Example())
			return err
		},
	}, &cobra.Command{
		Use:     "check FILE",
		Short:   "Report every fault of a configuration file at once",
		Example: "  giantstream config check pipeline.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := wiring.Load(args[0])
			if err != nil {
				return usageError{err}
			}
			if err := wiring.Check(&cfg); err != nil {
				return usageError{fmt.Errorf("%s: %w", args[0], err)}
			}
			for _, w := range append(cfg.Renamed(), cfg.Warnings()...) {
				fmt.Fprintf(a.err, "warning: %s\n", w)
			}
			fmt.Fprintf(a.out, "%s is valid: pipeline %q, %s, store %s\n",
				args[0], cfg.Pipeline, plural(cfg.Shards, "shard"), cfg.Store)
			return nil
		},
	})
	return cmd
}
