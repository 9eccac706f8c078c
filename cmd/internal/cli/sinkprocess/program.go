package sinkprocess

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/buildinfo"
	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/sinks"
)

// Main runs the command line of a program for one kind of sink, and returns its exit code. What such a sink links
// is too much for the service's program.
func Main(kind sinks.Kind) int {
	return command.UntilSignal(func(ctx context.Context) int {
		return Run(ctx, &command.App{Out: os.Stdout, Err: os.Stderr}, kind, os.Args[1:])
	})
}

// Run runs one command line of such a program, and returns its exit code.
func Run(ctx context.Context, a *command.App, kind sinks.Kind, args []string) int {
	return a.Execute(ctx, sinkProgram(a, kind), args)
}

func sinkProgram(a *command.App, kind sinks.Kind) *cobra.Command {
	name := "giantstream-" + kind.Name
	example := "  " + name + " run -c pipeline.yaml\n  " + name + " refill -c pipeline.yaml"
	if kind.Rows != nil {
		example += "\n  " + name + " rows -c pipeline.yaml"
	}
	root := &cobra.Command{
		Use:   name,
		Short: "Keep " + kind.Title + " equal to the embeddings topic",
		Long: `Keep ` + kind.Title + ` equal to the embeddings topic. It is the
program of a process of its own, with the configuration of giantstream.

Readers see one generation at a time. A new one is filled beside it, and takes its
place all at once when it is complete.`,
		Example: example,
		Version: buildinfo.Read().String(),
	}
	a.Dress(root)
	root.AddCommand(
		sinkRunner(a, &kind, &cobra.Command{
			Use:   "run",
			Short: "Follow the embeddings topic, until a signal",
			Long: `Follow the embeddings topic, until a signal. A process that was killed continues
with the offsets of its last commit, which are stored with the rows.

One process at a time writes. A second one takes over, and the first ends. Metrics
and health are at http.listen.`,
			Example: "  " + name + " run -c pipeline.yaml\n" +
				"  " + name + " run -c pipeline.yaml --set sinks.name=products --set http.listen=:9465\n" +
				"  " + name + " run -c pipeline.yaml --until-caught-up",
		}),
		sinkRefiller(a, &kind, &cobra.Command{
			Use:   "refill",
			Short: "Begin again with the topic's oldest record",
			Long: `Begin again with the oldest record of the topic, in a new place. Readers see what
there is now until the new one is complete.

This is for rows that were lost or changed by hand, a sink that was down for longer
than the topic keeps the records of deletions (delete.retention.ms), and a change
of sink.embedding_dim. A sink that runs ends; start it again.`,
			Example: "  " + name + " refill -c pipeline.yaml",
		}, "the next '"+name+" run' begins again"),
		sinkLeft(a, &kind, name),
		command.Version(a))
	if kind.Rows != nil {
		root.AddCommand(sinkRows(a, &kind, name))
	}
	command.HelpOnGroups(root)
	command.CheckArgs(root)
	return root
}

// sinkRows makes the command that follows the commit log instead of the topic.
func sinkRows(a *command.App, kind *sinks.Kind, program string) *cobra.Command {
	flags := command.PipelineFlags{WithSinks: true}
	var o sinks.RowsOptions
	cmd := &cobra.Command{
		Use:   "rows",
		Short: "Follow the commit log into a table of rows, until a signal",
		Long: `Keep a table equal to the newest rows of the pipeline: each node with its text, class
and labels. It reads the store, not Kafka, while the pipeline runs or is stopped.

Every state that readers see is a cut of the commit log. A new table is empty until
all that was committed at the start is in it. A process that was killed continues
with the manifests of its last commit. One process at a time writes: a second one
takes over, and the first ends. Metrics and health are at http.listen.`,
		Example: "  " + program + " rows -c pipeline.yaml\n" +
			"  " + program + " rows -c pipeline.yaml --until-caught-up\n" +
			"  " + program + " rows -c pipeline.yaml --refill",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, log, err := sinkConfig(a, &flags)
			if err != nil {
				return err
			}
			if err := kind.Configured(cfg); err != nil {
				return command.UsageError(err)
			}
			o.Config, o.Log = cfg, log
			return kind.Rows(cmd.Context(), o)
		},
	}
	flags.Register(cmd)
	cmd.Flags().BoolVar(&o.UntilCaughtUp, "until-caught-up", false,
		"exit when all that is committed now is in the table")
	cmd.Flags().BoolVar(&o.Again, "refill", false,
		"fill the table again from the beginning of the log; readers see the rows there are until then")
	return cmd
}
