package evaluate

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/train/generation/study"
)

func matcherCommand(a *command.App) *cobra.Command {
	var (
		flags   command.PipelineFlags
		hidden  float64
		matched int
		seed    uint64
		asJSON  bool
	)
	cmd := &cobra.Command{
		Use:   "matcher",
		Short: "Predict neighbourhoods of hidden nodes by linear classifiers (XR-Linear)",
		Long: `Hide the links of a share of the nodes, train a linear classifier on TF-IDF for every
cluster of the label tree and for every label (XR-Linear), and ask for the
neighbourhoods of the hidden nodes:

  P@k         the share of the k best predictions that are right
  recall@10   the share of a node's clusters, or neighbours, among the 10 best

for every level of the tree, coarse to fine, and for the neighbours themselves.
It shows how well the texts alone predict the neighbourhoods. Nothing is stored.`,
		Example: `  giantstream evaluate matcher --store ./out
  giantstream evaluate matcher --store ./out --hide 0.2 --matched 20 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !(hidden > 0 && hidden < 1) || matched < 0 {
				return command.UsageError(errors.New("--hide must lie between 0 and 1, --matched must not be negative"))
			}
			ctx := cmd.Context()
			pipe, err := a.Open(ctx, &flags)
			if err != nil {
				return err
			}
			source, err := statedLinks(ctx, pipe)
			if err != nil {
				return err
			}
			r, err := study.Matcher(ctx, pipe.StudyOptions(), source, hidden, matched, seed)
			pipe.Progress.Done()
			if err != nil {
				return err
			}
			if asJSON {
				return command.WriteJSON(a.Out, r)
			}
			return printMatcher(a, r)
		},
	}
	flags.Register(cmd)
	cmd.Flags().Float64Var(&hidden, "hide", 0.1, "share of the nodes whose links are hidden")
	cmd.Flags().IntVar(&matched, "matched", 0,
		"also train on this many clusters that the levels above choose by mistake (20 is usual)")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "seed of the split and the training")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}

func printMatcher(a *command.App, r *study.MatcherReport) error {
	fmt.Fprintf(a.Out, "%s nodes to learn from, %s hidden; %s features; trained in %s to %s weights\n\n",
		console.Count(r.Instances), console.Count(r.Hidden), console.Count(r.Features),
		console.Duration(time.Duration(r.Seconds*float64(time.Second))), console.Count(r.Weights))
	w := tabwriter.NewWriter(a.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "level\tof\tP@1\tP@3\tP@5\trecall@10")
	for t, l := range r.Levels {
		name := fmt.Sprint(t)
		if t == len(r.Levels)-1 {
			name = "neighbours"
		}
		fmt.Fprintf(w, "%s\t%s\t%.3f\t%.3f\t%.3f\t%.3f\n",
			name, console.Count(l.Clusters), l.P1, l.P3, l.P5, l.Recall10)
	}
	return w.Flush()
}
