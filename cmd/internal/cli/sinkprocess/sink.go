package sinkprocess

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/sinks"
	"giantstream/config"
)

// Command is 'giantstream sink' with its subcommands.
func Command(a *command.App) *cobra.Command {
	var kinds []string
	for _, k := range sinks.Kinds {
		kinds = append(kinds, fmt.Sprintf("  %-10s  %s", k.Name, k.Title))
	}
	cmd := &cobra.Command{
		Use:   "sink",
		Short: "Keep a database of vectors equal to the embeddings topic",
		Long: `Keep a database of vectors equal to the embeddings topic, in a process of its own:
a database that is slow or away holds nobody up. A pipeline without brokers of its
own (from files) is followed through its store.

Each generation fills a table of its own. Readers ask for one name (sinks.name), a
view or an alias, which changes to another generation all at once, when that one
is complete. Databases:
` + strings.Join(kinds, "\n"),
		Example: `  giantstream sink run pgvector -c pipeline.yaml
  giantstream sink run pgvector --store ./out --set sinks.pgvector.url='${PGVECTOR_URL}'
  giantstream sink refill pgvector -c pipeline.yaml`,
	}
	cmd.AddCommand(sinkRun(a), sinkRefill(a))
	return cmd
}

func sinkRun(a *command.App) *cobra.Command {
	return sinkRunner(a, nil, &cobra.Command{
		Use:   "run DATABASE",
		Short: "Follow the embeddings topic, or a store, into a database",
		Long: `Follow the embeddings topic into a database, until a signal. A sink that was
killed continues where it stopped, and a record that is written again changes
nothing. Its offsets are in the database, with the rows.

Without kafka.brokers the topic is in the process of 'giantstream run' alone, and
the sink follows the store: the same rows, whether that process runs or not. What
has changed since the newest generation it encodes itself.

One process at a time follows into a name. A second one takes over, and the first
ends. Metrics and health are at http.listen.`,
		Example: `  giantstream sink run pgvector -c pipeline.yaml
  giantstream sink run pgvector --store ./out --set sinks.pgvector.url='${PGVECTOR_URL}' --until-caught-up
  giantstream sink run pgvector -c pipeline.yaml --set sinks.name=products --set http.listen=:9465
  giantstream sink run pgvector -c pipeline.yaml --until-caught-up
  giantstream sink run pgvector -c pipeline.yaml --canary --set sinks.name=products_next`,
	})
}

// sinkRunner makes a command that follows the topic.
func sinkRunner(a *command.App, kind *sinks.Kind, cmd *cobra.Command) *cobra.Command {
	var untilCaughtUp bool
	cmd = sinkCommand(a, kind, cmd, func(cmd *cobra.Command, o sinks.Options) error {
		o.UntilCaughtUp = untilCaughtUp
		return sinks.Run(cmd.Context(), o)
	})
	cmd.Flags().BoolVar(&untilCaughtUp, "until-caught-up", false,
		"exit when all that there is now is in the database, and readers see its generation")
	return cmd
}

func sinkRefill(a *command.App) *cobra.Command {
	return sinkRefiller(a, nil, &cobra.Command{
		Use:   "refill DATABASE",
		Short: "Let a sink begin again with the topic's oldest record",
		Long: `Let a sink begin again with the oldest record of the topic, in a new table. Readers
see the table as it is now until the new one is complete.

This is for a database that has lost rows, a sink that was down for longer than
the topic keeps the records of deletions (delete.retention.ms), and a change of
sink.embedding_dim. A sink that runs ends; start it again.`,
		Example: `  giantstream sink refill pgvector -c pipeline.yaml
  giantstream sink refill pgvector -c pipeline.yaml --from 8a41c07be25d9f3c`,
	}, "the next 'giantstream sink run' begins again, with a new table")
}

// sinkRefiller makes a command that lets a sink begin again, and says what comes next.
func sinkRefiller(a *command.App, kind *sinks.Kind, cmd *cobra.Command, next string) *cobra.Command {
	var from string
	cmd = sinkCommand(a, kind, cmd, func(cmd *cobra.Command, o sinks.Options) error {
		o.From = from
		if err := sinks.Refill(cmd.Context(), o); err != nil {
			return err
		}
		_, err := fmt.Fprintln(a.Out, next)
		return err
	})
	cmd.Flags().StringVar(&from, "from", "",
		"take the tables of the pipeline with this `ID`, if the topic is now another's")
	return cmd
}

// sinkCommand makes a command about a kind of database, which its argument names if kind is nil.
func sinkCommand(a *command.App, kind *sinks.Kind, cmd *cobra.Command, do func(*cobra.Command, sinks.Options) error,
) *cobra.Command {
	flags := command.PipelineFlags{WithSinks: true}
	var canary bool
	cmd.Args = cobra.NoArgs
	if kind == nil {
		cmd.Args = cobra.ExactArgs(1)
		for _, k := range sinks.Kinds {
			cmd.ValidArgs = append(cmd.ValidArgs, k.Name)
		}
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		kind := kind
		if kind == nil {
			found, err := sinks.Find(args[0])
			if err != nil {
				return command.UsageError(err)
			}
			kind = &found
		}
		cfg, log, err := sinkConfig(a, &flags)
		if err != nil {
			return err
		}
		index, err := kind.Open(cfg, log)
		if err != nil {
			return command.UsageError(err)
		}
		defer index.Close()
		o := sinks.Options{Config: cfg, Index: index, Canary: canary, Log: log}
		if cfg.Kafka.Embedded() { // it encodes
			w := &command.Workplace{Config: cfg, Log: log}
			closeDevice, err := a.OpenDevice(w)
			if err != nil {
				return err
			}
			defer closeDevice()
			o.Device = w.Device
		}
		return do(cmd, o)
	}
	flags.Register(cmd)
	cmd.Flags().BoolVar(&canary, "canary", false,
		"follow sink.canary_topic, which gets new generations first; give the sink a name of its own (sinks.name)")
	return cmd
}

// sinkConfig returns the configuration of a sink's process, and its log.
func sinkConfig(a *command.App, flags *command.PipelineFlags) (*config.Config, *slog.Logger, error) {
	cfg, err := flags.Load()
	if err != nil {
		return nil, nil, err
	}
	log, err := a.Logger(cfg.Log.Level, cfg.Log.Format)
	if err != nil {
		return nil, nil, err
	}
	for _, warning := range cfg.Warnings() {
		log.Warn(warning)
	}
	return cfg, log, nil
}
