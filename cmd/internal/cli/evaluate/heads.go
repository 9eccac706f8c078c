package evaluate

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/internal/regular"
	"giantstream/train/generation"
	"giantstream/train/generation/heads"
	"giantstream/train/generation/study"
)

// headFlags split the nodes into those for training, validation and test.
type headFlags struct {
	split                string
	training, validation float64
}

// splitOf makes the split of a seed.
func (f headFlags) splitOf(n study.Nodes, seed uint64) (heads.Split, error) {
	switch f.split {
	case "rate":
		return heads.ByRate(n.Classes, f.training, f.validation, seed)
	case "time":
		return heads.ByTime(n.Classes, n.Times, f.training, f.validation)
	}
	file, err := regular.Open(f.split)
	if err != nil {
		return heads.Split{}, command.UsageError(fmt.Errorf("--split: rate, time or a file: %w", err))
	}
	defer file.Close() //nolint:errcheck // only read
	s, _, err := heads.ReadSplit(file, n.IDs, n.Classes)
	if err != nil {
		return s, fmt.Errorf("%s: %w", f.split, err)
	}
	return s, nil
}

func headsCommand(a *command.App) *cobra.Command {
	var (
		flags  command.PipelineFlags
		split  headFlags
		kinds  []string
		number int64
		runs   int
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "heads",
		Short: "Train classifiers on a generation's embeddings, and report per class",
		Long: `Train downstream models on the embeddings of a generation and the links of its
cut, for nodes that have a class, and measure them on nodes they have not seen:

  mlp        a hidden layer on the node's embedding alone
  sgc        a logistic regression on embeddings smoothed over two hops
  graphsage  two layers, means over sampled neighbours

--split says which nodes are for training, validation (when to stop) and test:
rate draws them at random, the same shares of each class; time trains on the
earliest event times and tests on the latest; a file names them, as CSV
(id,split) or JSON lines ({"id": …, "split": …}), with train, valid or test.
Nothing is stored.`,
		Example: `  giantstream evaluate heads --store ./out
  giantstream evaluate heads --store ./out --heads graphsage --split time --train 0.6 --validation 0.2
  giantstream evaluate heads --store ./out --split split.csv --runs 5 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if runs < 1 || len(kinds) == 0 {
				return command.UsageError(errors.New("--runs and --heads must name at least one"))
			}
			pipe, err := a.Open(ctx, &flags)
			if err != nil {
				return err
			}
			doc, err := command.FindGeneration(ctx, pipe.Store, number)
			if err != nil {
				return err
			}
			source, err := pipe.Source(ctx, doc.Cut)
			if err != nil {
				return err
			}
			wanted, seeds := make([]heads.Kind, len(kinds)), make([]uint64, runs)
			for i, k := range kinds {
				wanted[i] = heads.Kind(k)
			}
			for i := range seeds {
				seeds[i] = uint64(i + 1)
			}
			rows, err := study.Classify(ctx, pipe.StudyOptions().Resources, pipe.Store, source, doc, wanted, seeds,
				split.splitOf)
			pipe.Progress.Done()
			if errors.Is(err, heads.ErrKind) {
				return command.UsageError(err)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return command.WriteJSON(a.Out, rows)
			}
			return printHeads(a, rows, doc)
		},
	}
	flags.Register(cmd)
	cmd.Flags().StringSliceVar(&kinds, "heads", []string{"mlp", "sgc", "graphsage"}, "heads to train")
	cmd.Flags().Int64VarP(&number, "generation", "g", 0, "generation `number` (default: the newest that is ready)")
	cmd.Flags().StringVar(&split.split, "split", "rate", "rate, time or a file")
	cmd.Flags().Float64Var(&split.training, "train", 0.1, "share of the nodes to train on")
	cmd.Flags().Float64Var(&split.validation, "validation", 0.1,
		"share of the nodes for validation, which decides when to stop")
	cmd.Flags().IntVar(&runs, "runs", 3, "number of runs, with seeds 1, 2, …")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print all reports as JSON")
	return cmd
}

// printHeads prints a line per head, and the classes as the best of them tells
// them in its first run.
func printHeads(a *command.App, rows []study.HeadRow, doc *generation.Doc) error {
	first := rows[0].Runs[0]
	fmt.Fprintf(a.Out, "Generation %d, %s of %d dimensions; %s nodes to train on, %s for validation, %s to test; "+
		"mean ± standard deviation of %s\n\n",
		doc.Generation, doc.Encoder.Kind, doc.StoredDim(), console.Count(first.Train), console.Count(first.Validation),
		console.Count(first.Test), times(len(rows[0].Runs)))
	accuracy := func(r *heads.Report) float64 { return r.Accuracy }
	w := tabwriter.NewWriter(a.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "head\taccuracy\tmacro F1\tcommonest class")
	best := rows[0]
	for _, r := range rows {
		if r.SpreadOf(accuracy).Mean > best.SpreadOf(accuracy).Mean {
			best = r
		}
		fmt.Fprintln(w, strings.Join([]string{string(r.Head), r.SpreadOf(accuracy).String(),
			r.SpreadOf(func(r *heads.Report) float64 { return r.MacroF1 }).String(),
			fmt.Sprintf("%.3f", r.Runs[0].Majority)}, "\t"))
	}
	fmt.Fprintf(w, "\nclasses by %s, first run\ttest nodes\tprecision\trecall\tF1\n", best.Head)
	for _, c := range best.Runs[0].Classes {
		fmt.Fprintf(w, "%s\t%d\t%.3f\t%.3f\t%.3f\n", console.Plain(c.Class), c.Test, c.Precision, c.Recall, c.F1)
	}
	return w.Flush()
}
