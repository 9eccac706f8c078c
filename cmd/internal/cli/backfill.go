package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/wiring"
)

func backfillCommand(a *command.App) *cobra.Command {
	var (
		flags  command.PipelineFlags
		inputs command.InputFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "backfill",
		Short: "Send files or objects to the pipeline's topics",
		Long: `Send nodes, edges and orders from files, a directory or S3 to the input topics of a
running pipeline, with their own event times; an interrupted backfill resumes.
A pipeline on the embedded broker takes files directly: giantstream run --nodes.`,
		Example: "  giantstream backfill -c pipeline.yaml " +
			"--nodes 's3://bucket/nodes/*.parquet' --edges 'edges/*.jsonl.gz'\n" +
			"  giantstream backfill -c pipeline.yaml --profile shopify --nodes products_export.csv --snapshot\n" +
			"  giantstream backfill -c pipeline.yaml --orders 'orders/*.csv' --order-id order --order-item sku",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if !inputs.Given() {
				return command.UsageError(errors.New("give files with --nodes, --edges, --attributes and --orders"))
			}
			if err := inputs.UseProfile(flags.Profile); err != nil {
				return err
			}
			cfg, err := flags.Load()
			if err != nil {
				return err
			}
			inputs.Apply(cfg)
			if err := command.CheckConfig(cfg); err != nil {
				return err
			}
			if cfg.Kafka.Embedded() {
				return command.UsageError(errors.New(
					"the embedded broker runs inside 'giantstream run': give the files to that command"))
			}
			log, err := a.Logger(cfg.Log.Level, cfg.Log.Format)
			if err != nil {
				return err
			}
			files, err := inputs.Open(ctx, cfg)
			if err != nil {
				return err
			}
			mapped, err := inputs.CheckMapping(ctx, cfg, files)
			if err != nil {
				return err
			}
			command.WarnOfMapping(log, mapped)
			client, err := wiring.Connect(ctx, cfg)
			if err != nil {
				return err
			}
			defer client.Close()
			progress := console.New(a.Err, log)
			stats, err := wiring.Backfill(ctx, cfg, client, files, progress)
			progress.Done()
			if err != nil {
				return err
			}
			if asJSON {
				return command.WriteJSON(a.Out, stats)
			}
			fmt.Fprintf(a.Out, "sent %s; dead-lettered %s too large and %s; %s sent by an earlier run\n",
				sentRecords(&stats), console.Count(stats.Oversize),
				command.Plural(stats.BadRows, "line that is no CSV row", "lines that are no CSV rows"),
				console.Count(stats.Resumed))
			for _, line := range inputLines(&stats) {
				fmt.Fprintln(a.Out, line)
			}
			if warning := command.StaleWarning(&stats); warning != "" {
				fmt.Fprintln(a.Out, warning)
			}
			return nil
		},
	}
	flags.Register(cmd)
	flags.RegisterProfile(cmd)
	inputs.Register(cmd)
	inputs.RegisterOrders(cmd)
	inputs.RegisterSnapshot(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was sent as JSON")
	return cmd
}
