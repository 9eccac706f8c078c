package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/service"
	"giantstream/train/generation"
)

func (a *app) evaluate() *cobra.Command {
	var (
		flags    pipelineFlags
		inputs   inputFlags
		encoders []string
		model    encoderFlags
		holdout  float64
		seeds    int
		asJSON   bool
		ablation bool
		picture  string
	)
	cmd := &cobra.Command{
		Use:   "evaluate",
		Short: "Train each encoder with some edges hidden, and measure what it predicts",
		Long: `Hide a share of the edges, train each encoder on the rest, and measure:

  link AUC, MRR, hits@10   the hidden edges against negatives drawn by degree
  class accuracy           a logistic regression on the embeddings, trained on a
                           share of the labelled nodes (where nodes have labels)

Each split hides other edges; the figures are means over the splits ± their
standard deviation. Nothing is stored. The encoder lsa is the text-only baseline.
The graph is what a pipeline has committed, or the files given; then the
configuration, if there is one, says how to featurize, train and evaluate.

With --ablation the rows are those of the paper instead: texts alone, link
prediction with a triplet loss, and neighbourhood prediction (GIANT) by what the
labels' tree is built from: random, text, pifa-identity (links alone), pifa. The
rows train the configuration's train.encoder, once per split.`,
		Example: `  giantstream evaluate --store ./out
  giantstream evaluate --store ./out --ablation --picture ablation.svg
  giantstream evaluate --nodes nodes.jsonl.gz --edges edges.jsonl.gz --holdout 0.1 --splits 3
  giantstream evaluate -c bert.yaml --nodes nodes.jsonl.gz --edges edges.jsonl.gz --ablation`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			ctx := cmd.Context()
			switch {
			case ablation && cmd.Flags().Changed("encoders"):
				return usageError{errors.New("--ablation trains the encoder of the configuration (train.encoder); leave out --encoders")}
			case !ablation && picture != "":
				return usageError{errors.New("--picture draws what --ablation prints; give both")}
			}
			if inputs.given() {
				if flags.store != "" {
					return usageError{errors.New("files (--nodes, --edges) are evaluated apart from any pipeline; leave out --store")}
				}
				if flags.file != "" { // what is wrong with it is said before the files are read
					if _, err := flags.load(); err != nil {
						return err
					}
				}
				dir, err := a.ingestForEvaluation(ctx, &inputs)
				if dir != "" {
					defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
				}
				if err != nil {
					return err
				}
				flags.store = dir
			}
			pipe, err := flags.open(ctx)
			if err != nil {
				return err
			}
			cfg := pipe.cfg
			model.apply(cfg)
			log, err := a.logger("", cfg.Log.Format)
			if err != nil {
				return err
			}
			source, err := service.SourceAt(ctx, pipe.store, pipe.id.Shards, nil)
			if err != nil {
				return err
			}
			service.Limit(cfg)
			progress := console.New(a.err, log)
			b := &generation.Builder{Settings: service.SettingsOf(cfg), Workers: cfg.Train.Threads,
				MemoryLimit: int64(cfg.Featurize.MemoryLimit), Progress: progress, Log: log, Now: time.Now}
			b.Settings.Holdout = holdout
			splits := make([]uint64, seeds)
			for i := range splits {
				splits[i] = uint64(i + 1)
			}
			if ablation {
				return a.ablate(ctx, b, source, splits, picture, asJSON, progress.Done)
			}
			result, err := b.Compare(ctx, source, encoders, splits)
			progress.Done()
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(a.out, result)
			}
			return a.printComparison(result, holdout, b.Settings.ProbeRates)
		},
	}
	flags.register(cmd)
	inputs.register(cmd)
	model.registerModel(cmd)
	cmd.Flags().StringSliceVar(&encoders, "encoders", []string{"lsa", "linear", "bag"}, "encoders to compare; also bert, with --model")
	cmd.Flags().Float64Var(&holdout, "holdout", 0.1, "share of the edges to hide")
	cmd.Flags().IntVar(&seeds, "splits", 3, "number of splits, with seeds 1, 2, …")
	cmd.Flags().BoolVar(&ablation, "ablation", false, "compare what the paper compares, with the configuration's encoder")
	cmd.Flags().StringVar(&picture, "picture", "", "with --ablation: draw the table to this file, as SVG")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print every split's figures as JSON")
	cmd.AddCommand(a.heads(), a.matcher())
	return cmd
}

// ingestForEvaluation takes files through the pipeline, into a temporary
// store: there is one way in for data, and it is the one being evaluated.
func (a *app) ingestForEvaluation(ctx context.Context, inputs *inputFlags) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "giantstream-evaluate-*"); err != nil {
		return "", err
	}
	flags := pipelineFlags{store: dir}
	cfg, err := flags.load()
	if err != nil {
		return dir, err
	}
	inputs.apply(cfg)
	forOneRun(cfg)
	nodes, edges, err := inputs.open(ctx, cfg)
	if err != nil {
		return dir, err
	}
	log, err := a.logger("", cfg.Log.Format)
	if err != nil {
		return dir, err
	}
	store, err := openStore(ctx, cfg)
	if err != nil {
		return dir, err
	}
	progress := console.New(a.err, log)
	service.Limit(cfg)
	s, err := service.Start(ctx, service.Options{Config: cfg, Store: store, Log: log, Progress: progress})
	if err != nil {
		return dir, err
	}
	if _, err = service.Backfill(ctx, cfg, s.Client(), nodes, edges, progress); err == nil {
		err = s.Drain(ctx)
	}
	progress.Done()
	return dir, closing(s, err)
}

func (a *app) printComparison(result []generation.Comparison, holdout float64, rates []float64) error {
	splits, hidden := 0, 0
	if len(result) > 0 {
		splits = len(result[0].Runs)
		for _, r := range result[0].Runs {
			if r.Links != nil {
				hidden += r.Links.Edges / splits
			}
		}
	}
	fmt.Fprintf(a.out, "%d splits, %g %% of the edges hidden (about %s), negatives drawn by degree; mean ± standard deviation between splits\n\n",
		splits, 100*holdout, console.Count(hidden))
	w := tabwriter.NewWriter(a.out, 0, 0, 3, ' ', 0)
	columns := figures(rates)
	head := []string{"encoder"}
	for _, f := range columns {
		head = append(head, f.name)
	}
	fmt.Fprintln(w, strings.Join(head, "\t"))
	for _, c := range result {
		row := []string{c.Encoder}
		for _, f := range columns {
			row = append(row, c.Over(f.of).String())
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}
