package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/logview"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/featurize/pifa"
	"giantstream/sink"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/fit"
	"giantstream/train/plan"
)

func planCommand(a *command.App) *cobra.Command {
	var (
		nodes, edges, texts        float64
		memory, bandwidth, rates   string
		labelFeatures, missingText string
		in                         plan.Input
		asJSON                     bool
	)
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Estimate what building a graph would cost: tasks, bytes, memory, time and money",
		Long: `Estimate a build ('giantstream build') of a graph that nobody has built yet,
stage by stage, on a number of machines. Nothing is read but the file of rates.

Rates come from 'giantstream plan calibrate', which builds a small graph on this
machine.
The model and how far it was checked are in docs/PLANNING.md.`,
		Example: `  giantstream plan calibrate --nodes n.jsonl.gz --edges e.jsonl.gz -o rates.json
  giantstream plan --rates rates.json --nodes 111e6 --edges 1.6e9 --text-bytes 111e9 \
    --workers 16 --cores 8 --memory 16GiB`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in.Nodes, in.Edges, in.TextBytes, in.Shards = int64(nodes), int64(edges), int64(texts), in.Workers
			in.Features, in.Fill = labelFeatures != string(pifa.PIFA), missingText == fit.Neighbours
			if _, err := pifa.ParseKind(labelFeatures); err != nil {
				return command.UsageError(fmt.Errorf("--label-features: %w", err))
			}
			if !slices.Contains(fit.MissingTexts, missingText) {
				return command.UsageError(fmt.Errorf("--missing-text %s: use one of %s", missingText,
					strings.Join(fit.MissingTexts, ", ")))
			}
			for _, s := range []struct {
				flag, text string
				to         func(int64)
			}{{"--memory", memory, func(n int64) { in.Memory = n }},
				{"--bandwidth", bandwidth, func(n int64) { in.Bandwidth = float64(n) }}} {
				n, err := config.ParseSize(s.text)
				if err != nil {
					return command.UsageError(fmt.Errorf("%s: %w", s.flag, err))
				}
				s.to(int64(n))
			}
			if rates == "" {
				return command.UsageError(
					errors.New("--rates is missing: a file that 'giantstream plan calibrate' writes"))
			}
			calibration, err := plan.Load(rates)
			if err != nil {
				return command.UsageError(fmt.Errorf("--rates: %w", err))
			}
			if err := in.Validate(); err != nil {
				return command.UsageError(err)
			}
			p, err := plan.Estimate(in, calibration)
			if err != nil {
				return err
			}
			if asJSON {
				return command.WriteJSON(a.Out, p)
			}
			return printEstimate(a, in, calibration, p)
		},
	}
	f := cmd.Flags()
	f.Float64Var(&nodes, "nodes", 0, "nodes of the graph")
	f.Float64Var(&edges, "edges", 0, "edges, each once")
	f.Float64Var(&texts, "text-bytes", 0, "bytes of all texts")
	f.IntVar(&in.Workers, "workers", 1, "machines")
	f.IntVar(&in.Cores, "cores", 8, "cores of each machine")
	f.StringVar(&memory, "memory", "4GiB", "memory of each machine")
	f.StringVar(&bandwidth, "bandwidth", "1GiB", "bytes a second between a machine and the store")
	f.StringVar(&labelFeatures, "label-features", string(pifa.PIFA), "featurize.label_features")
	f.StringVar(&missingText, "missing-text", fit.Skip, "embed.missing_text")
	f.BoolVar(&in.Refresh, "refresh", false, "there is a generation before, to compare with")
	f.Float64Var(&in.Prices.CoreHour, "core-hour", 0.05, "price of a core for an hour")
	f.Float64Var(&in.Prices.GBMonth, "gb-month", 0.023, "price of 10⁹ bytes in the store for 30 days")
	f.StringVar(&rates, "rates", "", "file of rates")
	f.BoolVar(&asJSON, "json", false, "print the estimate as JSON")
	cmd.AddCommand(calibrate(a))
	return cmd
}

func printEstimate(a *command.App, in plan.Input, c plan.Calibration, e *plan.Plan) error {
	p := &command.Printer{Out: a.Out}
	p.Heading("%s, %s: %s, %s of labels", command.Plural(in.Nodes, "node"), command.Plural(in.Edges, "edge"),
		command.Plural(e.Partitions, "partition"), command.Plural(e.Ranges, "range"))
	w := tabwriter.NewWriter(p, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "stage\ttasks\tread\tshuffled\twritten\ttask memory\tin all\tcore-hours\ttime\tmoney\t")
	for _, s := range append(e.Stages, e.Total) {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%.2f\t%s\t%.2f\t\n", s.Name, s.Tasks, console.Bytes(s.ReadBytes),
			console.Bytes(s.ShuffledBytes), console.Bytes(s.WrittenBytes), console.Bytes(s.Memory),
			console.Bytes(s.Machine), s.CoreSeconds/3600,
			console.Duration(time.Duration(s.Seconds*float64(time.Second))), s.Money)
	}
	p.Keep(w.Flush())
	p.Line("\n%s of %s and %s, %s/s to the store, %s at a time on each ('build --workers %d\n"+
		"--partitions %d'); rates of %s, measured on %s with %s and the encoder %s.",
		command.Plural(in.Workers, "machine"), command.Plural(in.Cores, "core"), console.Bytes(in.Memory),
		console.Bytes(int64(in.Bandwidth)), command.Plural(e.AtATime, "task"), e.AtATime, e.Partitions,
		c.Machine, c.When.Format(time.DateOnly), command.Plural(c.Graph.Nodes, "node"), c.Encoder)
	return p.Err
}

// calibrate builds a graph in stages, one task at a time, and writes what each stage cost.
func calibrate(a *command.App) *cobra.Command {
	var (
		inputs             command.InputFlags
		output, encoder    string
		dim, projectionDim int
	)
	defaults := config.Default()
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Measure the rates of this machine on a small graph",
		Long: `Ingest the files into a temporary store, build generations of them in stages, one
task at a time, and write what each stage costs. There are five builds, which divide
the graph in different ways, for that tells apart what a stage depends on; they take
about three times as long as one. Take a graph like the one that is planned for, of
at least ` + strconv.Itoa(plan.LeastNodes) + ` nodes, and a machine that does nothing else.`,
		Example: "  giantstream plan calibrate --nodes nodes.jsonl.gz --edges edges.jsonl.gz -o rates.json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(inputs.Nodes) == 0 || len(inputs.Edges) == 0 {
				return command.UsageError(errors.New("--nodes and --edges are missing: a graph to measure with"))
			}
			dir, err := a.IngestApart(cmd.Context(), &inputs)
			if dir != "" {
				defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
			}
			if err != nil {
				return err
			}
			c, err := measure(cmd.Context(), a, dir, func(cfg *config.Config) {
				cfg.Train.Encoder, cfg.Embedding.Dim, cfg.Featurize.ProjectionDim = encoder, dim, projectionDim
			})
			if err != nil {
				return err
			}
			if c.Graph.Nodes < plan.LeastNodes {
				return fmt.Errorf("the graph has %s: rates need one of %d or more",
					command.Plural(c.Graph.Nodes, "node"), plan.LeastNodes)
			}
			if err := c.Save(output); err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "%s: rates of %d stages, from %s and %s\n", output, len(c.Stages),
				command.Plural(c.Graph.Nodes, "node"), command.Plural(c.Graph.Links/2, "edge"))
			return nil
		},
	}
	inputs.Register(cmd)
	f := cmd.Flags()
	f.StringVarP(&output, "output", "o", "rates.json", "file to write")
	f.StringVar(&encoder, "encoder", defaults.Train.Encoder, "train.encoder")
	f.IntVar(&dim, "dim", defaults.Embedding.Dim, "embedding.dim")
	f.IntVar(&projectionDim, "projection-dim", defaults.Featurize.ProjectionDim, "featurize.projection_dim")
	return cmd
}

func measure(ctx context.Context, a *command.App, dir string, set func(*config.Config)) (
	c plan.Calibration, err error) {
	pipe, err := a.Open(ctx, &command.PipelineFlags{Store: dir}, set)
	if err != nil {
		return c, err
	}
	scratch, err := os.MkdirTemp("", "giantstream-calibrate-*")
	if err != nil {
		return c, err
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // a temporary directory
	c, err = plan.Calibrate(ctx, plan.Trial{
		Dir: scratch,
		Log: func(ctx context.Context, counted func(sink.Store) sink.Store) (work.Log, error) {
			at, err := logview.OpenCut(ctx, counted(pipe.Store), pipe.Identity.Shards, nil)
			if err != nil {
				return nil, err
			}
			return at.Log(), nil
		},
		Shards: pipe.Identity.Shards, Settings: wiring.SettingsOf(pipe.Config),
		Resources: wiring.ResourcesOf(pipe.Config, nil, pipe.Progress, pipe.Log),
		Machine:   command.Plural(runtime.NumCPU(), "core") + ", " + runtime.GOOS + "/" + runtime.GOARCH,
		Watch: func(n, builds int, s stages.Stage) {
			pipe.Progress.Stage(fmt.Sprintf("build %d of %d: %s", n, builds, s.Name), 0)
		},
	})
	pipe.Progress.Done()
	return c, err
}
