package sinkprocess

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/sinks"
	"giantstream/stream/forget"
)

// sinkLeft makes the command that looks for nodes that are to be forgotten.
func sinkLeft(a *command.App, kind *sinks.Kind, program string) *cobra.Command {
	flags := command.PipelineFlags{WithSinks: true}
	var from string
	cmd := &cobra.Command{
		Use:   "left [ID...]",
		Short: "Find rows of nodes that are to be forgotten",
		Long: `Find rows of nodes that are to be forgotten, in what readers see and in files that the
tables keep, and say what rids them of these. It is the part of 'giantstream forget
--check' that looks into ` + kind.Title + `. It changes nothing, and the process
that writes there goes on. The exit code is 0 if nothing is left, and 1 otherwise.`,
		Example: "  " + program + " left -c pipeline.yaml --from ids.txt",
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := command.ReadIDs(args, from)
			if err != nil {
				return err
			}
			cfg, log, err := sinkConfig(a, &flags)
			if err != nil {
				return err
			}
			if err := kind.Configured(cfg); err != nil {
				return command.UsageError(err)
			}
			s := forget.NewScanner(forget.Targets{IDs: slices.Sorted(maps.Keys(ids))})
			if err := kind.Scan(cmd.Context(), s, cfg, log, nil); err != nil {
				return err
			}
			return printLeft(a, s.Report(), len(ids))
		},
	}
	flags.Register(cmd)
	cmd.Flags().StringVar(&from, "from", "", "a `FILE` of ids, one a line; - is the standard input")
	return cmd
}

// printLeft prints what a sink has of some ids, which is an error if it is anything.
func printLeft(a *command.App, r forget.Report, ids int) error {
	for _, place := range r.Unread {
		return errors.New(place)
	}
	for _, at := range r.Findings {
		fmt.Fprintf(a.Out, "%s: %s of %s nodes\n", console.Plain(at.Place), console.Count(at.IDs), console.Count(ids))
	}
	if len(r.Findings) > 0 {
		return fmt.Errorf("not forgotten yet: %s", r.Findings[0].Do)
	}
	_, err := fmt.Fprintf(a.Out, "nothing of %s nodes is left\n", console.Count(ids))
	return err
}
