package evaluate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/logview"
	"giantstream/train/generation/eval"
	"giantstream/train/generation/fit"
	"giantstream/train/generation/study"
)

// Command is 'giantstream evaluate' with its subcommands.
func Command(a *command.App) *cobra.Command {
	var flags evaluateFlags
	cmd := &cobra.Command{
		Use:   "evaluate",
		Short: "Train each encoder with some edges hidden, and measure what it predicts",
		Long: `Hide a share of the edges, train each encoder on the rest, and measure:

  link AUC, MRR, hits@10   the hidden edges against negatives drawn by degree
  class accuracy           a logistic regression on the embeddings, trained on a
                           share of the nodes with a class (where nodes have one)

and for the cold start, with text alone (lsa) beside each encoder:

  unseen nodes             hidden with all their edges from everything, vectorizer
                           included, and embedded after the training: their links
                           to other nodes, and their classes (--holdout-nodes; each
                           encoder is trained a second time for it)
  isolated nodes           classes of nodes without any edge, told by a probe that
                           is trained on the others
  by degree                links and classes of nodes with 0, 1-2, 3-10 and more
                           neighbours among the edges that are not hidden (classes
                           at the largest share of labelled nodes)

A figure of fewer than 30 edges or nodes is "too few". Each split hides other
edges; the figures are means over the splits ± their standard deviation, and the
log has those of each encoder and split as they come. Nothing is stored. The
encoder lsa is the text-only baseline. The graph is what a pipeline has committed,
or the files given; then the configuration, if there is one, says how to
featurize, train and evaluate. Orders do not count: 'giantstream evaluate orders'
is about them.

With --ablation the rows are those of the paper instead: texts alone, link
prediction with a triplet loss, and neighbourhood prediction (GIANT) by what the
labels' tree is built from: random, text, pifa-identity (links alone), pifa. The
rows train the configuration's train.encoder, once per split.`,
		Example: `  giantstream evaluate --store ./out
  giantstream evaluate --store ./out --ablation --picture ablation.svg
  giantstream evaluate --nodes nodes.jsonl.gz --edges edges.jsonl.gz --holdout 0.1 --splits 3
  giantstream evaluate --store ./out --holdout-nodes 0.1 --json | jq '.[].runs[].unseen'
  giantstream evaluate -c bert.yaml --nodes nodes.jsonl.gz --edges edges.jsonl.gz --ablation`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(cmd, a) },
	}
	flags.register(cmd)
	cmd.AddCommand(headsCommand(a), matcherCommand(a), ordersCommand(a))
	command.BeginsAnew(cmd)
	return cmd
}

// evaluateFlags say what to evaluate, and on which graph.
type evaluateFlags struct {
	pipeline command.PipelineFlags
	inputs   command.InputFlags
	encoders []string
	model    command.EncoderFlags
	holdout  float64
	unseen   float64
	seeds    int
	asJSON   bool
	ablation bool
	picture  string
}

func (f *evaluateFlags) register(cmd *cobra.Command) {
	f.pipeline.Register(cmd)
	f.inputs.Register(cmd)
	f.model.RegisterModel(cmd)
	cmd.Flags().StringSliceVar(&f.encoders, "encoders", []string{"lsa", "linear", "bag", "hybrid"},
		"encoders to compare; also "+fit.KindList(func(k fit.Kind) bool { return k.NeedsModel })+", with --model")
	cmd.Flags().Float64Var(&f.holdout, "holdout", 0.1, "share of the edges to hide")
	cmd.Flags().Float64Var(&f.unseen, "holdout-nodes", 0, "share of the nodes to hide with all their edges, "+
		"in a training of its own; 0 for none (default: the configuration's, 0.05)")
	cmd.Flags().IntVar(&f.seeds, "splits", 3, "number of splits, with seeds 1, 2, …")
	cmd.Flags().BoolVar(&f.ablation, "ablation", false,
		"compare what the paper compares, with the configuration's encoder")
	cmd.Flags().StringVar(&f.picture, "picture", "", "with --ablation: draw the table to this file, as SVG")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print every split's figures as JSON")
}

func (f *evaluateFlags) run(cmd *cobra.Command, a *command.App) error {
	ctx := cmd.Context()
	if err := f.check(cmd); err != nil {
		return err
	}
	if f.inputs.Given() {
		dir, err := a.IngestApart(ctx, &f.inputs)
		if dir != "" {
			defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
		}
		if err != nil {
			return err
		}
		f.pipeline.Store = dir
	}
	pipe, err := f.open(ctx, a)
	if err != nil {
		return err
	}
	f.model.Apply(pipe.Config)
	closeDevice, err := a.OpenDevice(pipe.Workplace)
	if err != nil {
		return err
	}
	defer closeDevice()
	source, err := statedLinks(ctx, pipe)
	if err != nil {
		return err
	}
	options := pipe.StudyOptions()
	options.Settings.Holdout = f.holdout
	if cmd.Flags().Changed("holdout-nodes") {
		pipe.Config.Evaluate.HoldoutNodes = f.unseen
		if err := command.CheckConfig(pipe.Config); err != nil {
			return err
		}
	}
	options.HoldoutNodes = pipe.Config.Evaluate.HoldoutNodes
	splits := make([]uint64, f.seeds)
	for i := range splits {
		splits[i] = uint64(i + 1)
	}
	if f.ablation {
		return ablate(ctx, a, options, source, splits, f.picture, f.asJSON, pipe.Progress.Done)
	}
	result, err := study.Compare(ctx, options, source, f.encoders, splits)
	pipe.Progress.Done()
	if err != nil {
		return err
	}
	if f.asJSON {
		return command.WriteJSON(a.Out, result)
	}
	return printComparison(a, result, f.holdout, options.Settings.ProbeRates)
}

// statedLinks is what the pipeline has committed, with a warning if it has orders: links of orders are made by a build.
func statedLinks(ctx context.Context, pipe *command.Pipeline) (*logview.Cut, error) {
	source, err := pipe.Source(ctx, nil)
	if err != nil {
		return nil, err
	}
	ordered, err := source.HasOrders(ctx)
	if ordered {
		pipe.Log.Warn("orders do not count here, stated links alone do: for orders, run 'giantstream evaluate orders'")
	}
	return source, err
}

// open opens the pipeline to evaluate. That of files has a name and a mapping of its own, which the configuration, that
// of another pipeline, need not fit.
func (f *evaluateFlags) open(ctx context.Context, a *command.App) (*command.Pipeline, error) {
	if !f.inputs.Given() {
		return a.Open(ctx, &f.pipeline)
	}
	cfg, err := f.pipeline.Load()
	if err != nil {
		return nil, err
	}
	return a.OpenStore(ctx, cfg)
}

// check refuses flags that exclude each other, and a faulty configuration before any file is read.
func (f *evaluateFlags) check(cmd *cobra.Command) error {
	unread := command.OfFiles(cmd)
	switch {
	case !f.inputs.Given() && len(unread) > 0: // --class, say: the figures would be those of another class
		return command.UsageError(fmt.Errorf("%s: these are about files, and no --nodes or --edges is given; "+
			"a pipeline's records are mapped already", strings.Join(unread, ", ")))
	case f.seeds < 1:
		return command.UsageError(fmt.Errorf("--splits is %d; it must be 1 or more", f.seeds))
	case !(f.holdout >= 0 && f.holdout < fit.MaxHoldout): // NaN is none of both
		return command.UsageError(fmt.Errorf("--holdout is %g; it must be from 0 to below %g", f.holdout,
			fit.MaxHoldout))
	case len(slices.Compact(slices.Sorted(slices.Values(f.encoders)))) < len(f.encoders):
		return command.UsageError(fmt.Errorf("--encoders %s names one twice", strings.Join(f.encoders, ",")))
	case f.ablation && cmd.Flags().Changed("encoders"):
		return command.UsageError(errors.New("--ablation trains the encoder of the configuration (train.encoder); " +
			"leave out --encoders"))
	case f.ablation && cmd.Flags().Changed("holdout-nodes"):
		return command.UsageError(errors.New("--ablation hides edges alone; leave out --holdout-nodes"))
	case !f.ablation && f.picture != "":
		return command.UsageError(errors.New("--picture draws what --ablation prints; give both"))
	case f.inputs.Given() && f.pipeline.Store != "":
		return command.UsageError(errors.New(
			"files (--nodes, --edges) are evaluated apart from any pipeline; leave out --store"))
	case f.inputs.Given() && f.pipeline.File != "":
		_, err := f.pipeline.Load()
		return err
	}
	return nil
}

func printComparison(a *command.App, result []study.Comparison, holdout float64, rates []float64) error {
	splits, hidden := 0, 0
	if len(result) > 0 {
		splits = len(result[0].Runs)
		for _, r := range result[0].Runs {
			if r.Links != nil {
				hidden += r.Links.Edges / splits
			}
		}
	}
	fmt.Fprintf(a.Out, "%s, %g %% of the edges hidden (about %s), negatives drawn by degree; "+
		"mean ± standard deviation between splits\n\n",
		command.Plural(splits, "split"), 100*holdout, console.Count(hidden))
	w := tabwriter.NewWriter(a.Out, 0, 0, 3, ' ', 0)
	columns := figures(rates)
	head := []string{"encoder"}
	for _, f := range columns {
		head = append(head, f.name)
	}
	fmt.Fprintln(w, strings.Join(head, "\t"))
	for _, c := range result {
		row := []string{c.Encoder}
		for _, f := range columns {
			row = append(row, c.SpreadOf(f.value).String())
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(a.Out)
	fmt.Fprintln(w, "cold start\tencoder\tcases\tlink AUC\tMRR\thits@10\tclass")
	for _, s := range coldStartRows(result, rates) {
		for _, c := range result {
			row := []string{s.name, c.Encoder, s.cases(c)}
			for _, f := range s.figures {
				row = append(row, spreadOrTooFew(c, f))
			}
			fmt.Fprintln(w, strings.Join(row, "\t"))
		}
	}
	return w.Flush()
}

// coldStartRow is a group of nodes that evaluate prints figures of.
type coldStartRow struct {
	name    string
	edges   func(fit.Evaluation) int // hidden edges, nil where there are none by nature
	nodes   func(fit.Evaluation) int // with a class
	figures []valueOf
}

// cases gives the mean numbers of edges and nodes of a group's figures.
func (r coldStartRow) cases(c study.Comparison) string {
	edges, nodes := 0, 0
	for _, e := range c.Runs {
		if r.edges != nil {
			edges += r.edges(e)
		}
		nodes += r.nodes(e)
	}
	n := max(1, len(c.Runs))
	words := console.Count(nodes/n) + " nodes"
	if r.edges != nil {
		words = console.Count(edges/n) + " edges, " + words
	}
	return words
}

// coldStartRows are the groups: unseen nodes, isolated nodes, and the buckets of degrees.
func coldStartRows(result []study.Comparison, rates []float64) (rows []coldStartRow) {
	if len(result) == 0 || len(result[0].Runs) == 0 {
		return nil
	}
	first := result[0].Runs[0]
	unseen := func(e fit.Evaluation) *fit.UnseenFigures {
		if e.Unseen == nil {
			return &fit.UnseenFigures{} // of a split that left nothing to learn from
		}
		return e.Unseen
	}
	if first.Unseen != nil {
		rows = append(rows, coldStartRow{name: "unseen nodes",
			edges: func(e fit.Evaluation) int { return unseen(e).Edges },
			nodes: func(e fit.Evaluation) int { return unseen(e).Labelled },
			figures: append(linkFigures(func(e fit.Evaluation) *eval.LinkMetrics { return unseen(e).Links }),
				accuracy(func(e fit.Evaluation) *eval.ClassMetrics { return unseen(e).Classes }))})
	}
	if first.Isolated != nil {
		rows = append(rows, coldStartRow{name: "isolated nodes",
			nodes: func(e fit.Evaluation) int {
				if e.Isolated == nil {
					return 0
				}
				return e.Isolated.Nodes
			},
			figures: []valueOf{nil, nil, nil,
				accuracy(func(e fit.Evaluation) *eval.ClassMetrics { return e.Isolated })}})
	}
	for k, b := range first.ByDegree {
		if b.Edges > 0 || b.Labelled > 0 {
			rows = append(rows, degreeRow(k, b.Degree, len(rates) > 0))
		}
	}
	return rows
}

// degreeRow is the row of bucket k of the degrees.
func degreeRow(k int, degree string, probed bool) coldStartRow {
	row := coldStartRow{name: "degree " + degree,
		edges:   func(e fit.Evaluation) int { return e.ByDegree[k].Edges },
		nodes:   func(e fit.Evaluation) int { return e.ByDegree[k].Labelled },
		figures: linkFigures(func(e fit.Evaluation) *eval.LinkMetrics { return e.ByDegree[k].Links })}
	// The class column has the largest rate.
	row.figures = append(row.figures, accuracy(func(e fit.Evaluation) *eval.ClassMetrics {
		classes := e.ByDegree[k].Classes
		if len(classes) == 0 || !probed {
			return nil
		}
		return &classes[len(classes)-1].ClassMetrics
	}))
	return row
}

// valueOf reads a figure of an evaluation, if it has that.
type valueOf = func(fit.Evaluation) (float64, bool)

// linkFigures are the columns of links.
func linkFigures(of func(fit.Evaluation) *eval.LinkMetrics) (out []valueOf) {
	for _, get := range []func(*eval.LinkMetrics) float64{
		func(m *eval.LinkMetrics) float64 { return m.AUC },
		func(m *eval.LinkMetrics) float64 { return m.MRR },
		func(m *eval.LinkMetrics) float64 { return m.Hits10 },
	} {
		out = append(out, func(e fit.Evaluation) (float64, bool) {
			if m := of(e); m != nil {
				return get(m), true
			}
			return 0, false
		})
	}
	return out
}

// accuracy is the column of classes.
func accuracy(of func(fit.Evaluation) *eval.ClassMetrics) valueOf {
	return func(e fit.Evaluation) (float64, bool) {
		if m := of(e); m != nil {
			return m.Accuracy, true
		}
		return 0, false
	}
}

// spreadOrTooFew prints a figure over the splits; nil is a figure that the group does not have.
func spreadOrTooFew(c study.Comparison, figure valueOf) string {
	if figure == nil {
		return "-"
	}
	if s := c.SpreadOf(figure).String(); s != "-" {
		return s
	}
	return command.TooFew
}
