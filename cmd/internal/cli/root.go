package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/buildinfo"
	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/cli/evaluate"
	"giantstream/cmd/internal/cli/generations"
	"giantstream/cmd/internal/cli/operate"
	"giantstream/cmd/internal/cli/sinkprocess"
	"giantstream/train/encoders/bert/compute/devices"
)

// Run executes one command line and returns the process's exit code.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer, drivers devices.Drivers) int {
	a := &command.App{Out: stdout, Err: stderr, Drivers: drivers}
	return a.Execute(ctx, rootCommand(a), args)
}

// rootCommand has all commands, in the groups of the help text.
func rootCommand(a *command.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "giantstream",
		Short: "Graph-aware embeddings of texts, streamed",
		Long: `giantstream turns node texts and edges into embeddings that carry the graph
(GIANT, Chien et al., ICLR 2022), from Kafka topics or files to a sink topic and
Parquet, and keeps them current while the catalog changes.

Start here:
  giantstream quickstart                                        everything embedded, on a sample graph
  giantstream run --nodes n.jsonl.gz --edges e.jsonl.gz --store ./store --until-idle     your own files
  giantstream config example > pipeline.yaml                    the service`,
		Version: buildinfo.Read().String(),
	}
	a.Dress(root)
	root.AddGroup(
		&cobra.Group{ID: "main", Title: "Run:"},
		&cobra.Group{ID: "stage", Title: "One stage by hand:"},
		&cobra.Group{ID: "look", Title: "Look and repair:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("main", quickstartCommand(a), previewCommand(a), runCommand(a), backfillCommand(a), importCommand(a),
		planCommand(a), testCommand(a), sinkprocess.Command(a))
	add("stage", append(oldNames(a), buildCommand(a), rebuildCommand(a), evaluate.Command(a))...)
	add("look", generations.Similar(a), generations.GoesWith(a), operate.Status(a), generations.Command(a),
		operate.Verify(a), inspectCommand(a), generations.Report(a), operate.DLQ(a), operate.Override(a),
		operate.Forget(a), operate.Remap(a), operate.Reshard(a), operate.Export(a), operate.Claim(a), configCommand(a))
	root.AddCommand(helpExitCodes(), command.Version(a))
	command.HelpOnGroups(root)
	command.CheckArgs(root)
	command.TakeFlagsOnce(root)
	completions(root)
	return root
}

func helpExitCodes() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean",
		Long: `Exit codes:
  0    done
  1    failed: the message says at what; running the same command again resumes
  2    wrong command line or configuration: nothing was started
  3    finished, but records were lost: the topics had deleted them; accept it with
       'giantstream run --accept-loss TOPIC'
  130  interrupted by a signal; the next run continues where this one stopped, but
       for 'evaluate' and 'export', which begin anew`,
	}
}

// Commands returns all commands, for manual pages and completions.
func Commands() *cobra.Command {
	return rootCommand(&command.App{Out: io.Discard, Err: io.Discard})
}
