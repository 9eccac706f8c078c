package command

import (
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A command that is interrupted says whether the next run goes on.
func TestInterruptedCommandsSayWhatComesNext(t *testing.T) {
	for args, want := range map[string]string{
		"run":            "the next run goes on where this one stopped",
		"evaluate":       "the next run begins anew",
		"evaluate heads": "the next run begins anew",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		stop := func(cmd *cobra.Command, _ []string) error { cancel(); return cmd.Context().Err() }
		root := &cobra.Command{Use: "giantstream"}
		evaluate := &cobra.Command{Use: "evaluate", RunE: stop}
		evaluate.AddCommand(&cobra.Command{Use: "heads", RunE: stop})
		BeginsAnew(evaluate)
		root.AddCommand(&cobra.Command{Use: "run", RunE: stop}, evaluate)
		var errs strings.Builder
		a := &App{Out: &errs, Err: &errs}
		a.Dress(root)
		if code := a.Execute(ctx, root, strings.Fields(args)); code != ExitInterrupted ||
			!strings.Contains(errs.String(), want) {
			t.Errorf("%s: exit code %d, %q, want %q", args, code, errs.String(), want)
		}
	}
}
