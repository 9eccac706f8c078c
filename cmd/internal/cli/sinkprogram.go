package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/buildinfo"
	"giantstream/cmd/internal/sinks"
)

// SinkMain runs the command line of a program for one kind of sink, and returns its exit code. What such a sink links
// is too much for the service's program.
func SinkMain(kind sinks.Kind) int {
	return onSignals(func(ctx context.Context) int {
		a := &app{out: os.Stdout, err: os.Stderr}
		return a.execute(ctx, a.sinkProgram(kind), os.Args[1:])
	})
}

func (a *app) sinkProgram(kind sinks.Kind) *cobra.Command {
	name := "giantstream-" + kind.Name
	root := &cobra.Command{
		Use:   name,
		Short: "Keep " + kind.Title + " equal to the embeddings topic",
		Long: `Keep ` + kind.Title + ` equal to the embeddings topic. It is the
program of a process of its own, with the configuration of giantstream.

Readers see one generation at a time. A new one is filled beside it, and takes its
place all at once when it is complete.`,
		Example: "  " + name + " run -c pipeline.yaml\n  " + name + " refill -c pipeline.yaml",
		Version: buildinfo.Read().String(),
	}
	a.dress(root)
	root.AddCommand(
		a.sinkRunner(&kind, &cobra.Command{
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
		a.sinkRefiller(&kind, &cobra.Command{
			Use:   "refill",
			Short: "Begin again with the topic's oldest record",
			Long: `Begin again with the oldest record of the topic, in a new place. Readers see what
there is now until the new one is complete.

This is for rows that were lost or changed by hand, a sink that was down for longer
than the topic keeps the records of deletions (delete.retention.ms), and a change
of sink.embedding_dim. A sink that runs ends; start it again.`,
			Example: "  " + name + " refill -c pipeline.yaml",
		}, "the next '"+name+" run' reads the topic from its beginning"),
		a.version())
	groups(root)
	usageArgs(root)
	return root
}
