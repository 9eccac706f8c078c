package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/plan"
	"giantstream/cmd/internal/service"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/internal/tasks"
	"giantstream/train/generation/staged"
)

func (a *app) plan() *cobra.Command {
	var (
		nodes, edges, texts       float64
		memory, bandwidth, rates  string
		workers, cores, dim, proj int
		prices                    plan.Prices
		asJSON                    bool
	)
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Estimate what building a graph would cost: tasks, bytes, memory, time and money",
		Long: `Estimate a staged build ('giantstream build') of a graph that nobody has built yet,
stage by stage, on a number of machines. Nothing is read but the file of rates.

Rates come from 'giantstream plan calibrate', which builds a small graph on this
machine.
The model and how far it was checked are in docs/PLANNING.md.`,
		Example: `  giantstream plan calibrate --nodes n.jsonl.gz --edges e.jsonl.gz -o rates.json
  giantstream plan --rates rates.json --nodes 111e6 --edges 1.6e9 --text-bytes 111e9 \
    --workers 16 --cores 8 --memory 16GiB`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in := plan.Input{Nodes: int64(nodes), Edges: int64(edges), TextBytes: int64(texts), Workers: workers,
				Cores: cores, Dim: dim, ProjectionDim: proj, Shards: workers, Prices: prices}
			for _, s := range []struct {
				flag, text string
				to         func(int64)
			}{{"--memory", memory, func(n int64) { in.Memory = n }},
				{"--bandwidth", bandwidth, func(n int64) { in.Bandwidth = float64(n) }}} {
				n, err := config.ParseSize(s.text)
				if err != nil {
					return usageError{fmt.Errorf("%s: %w", s.flag, err)}
				}
				s.to(int64(n))
			}
			if rates == "" {
				return usageError{errors.New("--rates is missing: a file that 'giantstream plan calibrate' writes")}
			}
			calibration, err := plan.Load(rates)
			if err != nil {
				return usageError{fmt.Errorf("--rates: %w", err)}
			}
			if err := in.Validate(); err != nil {
				return usageError{err}
			}
			p, err := plan.Of(in, calibration.Rates)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(a.out, p)
			}
			return a.printEstimate(in, calibration, p)
		},
	}
	f := cmd.Flags()
	f.Float64Var(&nodes, "nodes", 0, "nodes of the graph")
	f.Float64Var(&edges, "edges", 0, "edges, each once")
	f.Float64Var(&texts, "text-bytes", 0, "bytes of all texts")
	f.IntVar(&workers, "workers", 1, "machines")
	f.IntVar(&cores, "cores", 8, "cores of each machine")
	f.StringVar(&memory, "memory", "4GiB", "memory of each machine")
	f.StringVar(&bandwidth, "bandwidth", "1GiB", "bytes a second between a machine and the store")
	f.IntVar(&dim, "dim", config.Default().Embedding.Dim, "embedding.dim")
	f.IntVar(&proj, "projection-dim", config.Default().Featurize.ProjectionDim, "featurize.projection_dim")
	f.Float64Var(&prices.CoreHour, "core-hour", 0.05, "price of a core for an hour")
	f.Float64Var(&prices.GBMonth, "gb-month", 0.023, "price of 10⁹ bytes in the store for 30 days")
	f.StringVar(&rates, "rates", "", "file of rates")
	f.BoolVar(&asJSON, "json", false, "print the estimate as JSON")
	cmd.AddCommand(a.calibrate())
	return cmd
}

func (a *app) printEstimate(in plan.Input, c plan.Calibration, e *plan.Plan) error {
	p := &printer{out: a.out}
	p.heading("%s, %s: %s, %s of labels", plural(in.Nodes, "node"), plural(in.Edges, "edge"),
		plural(e.Partitions, "partition"), plural(e.Ranges, "range"))
	w := tabwriter.NewWriter(p, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "stage\ttasks\tread\twritten\tmemory\tcore-hours\ttime\tmoney\t")
	for _, s := range append(e.Stages, e.Total) {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%.2f\t%s\t%.2f\t\n", s.Name, s.Tasks, console.Bytes(s.ReadBytes),
			console.Bytes(s.WrittenBytes), console.Bytes(s.Memory), s.CoreSeconds/3600,
			console.Duration(time.Duration(s.Seconds*float64(time.Second))), s.Money)
	}
	p.keep(w.Flush())
	p.line("\n%s of %s and %s, %s/s to the store; rates of %s, measured on %s with %s.",
		plural(in.Workers, "machine"), plural(in.Cores, "core"), console.Bytes(in.Memory),
		console.Bytes(int64(in.Bandwidth)), c.Machine, c.When.Format(time.DateOnly), plural(c.Nodes, "node"))
	return p.err
}

// calibrate builds a graph in stages, one task at a time, and writes what each stage cost.
func (a *app) calibrate() *cobra.Command {
	var (
		inputs inputFlags
		output string
	)
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Measure the rates of this machine on a small graph",
		Long: `Ingest the files into a temporary store, build a generation of them in stages, one
task at a time, and write what each stage cost per unit. Take a graph like the one
that is planned for, of at least some ten thousand nodes, and a machine that does
nothing else.`,
		Example: "  giantstream plan calibrate --nodes nodes.jsonl.gz --edges edges.jsonl.gz -o rates.json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(inputs.nodes) == 0 || len(inputs.edges) == 0 {
				return usageError{errors.New("--nodes and --edges are missing: a graph to measure with")}
			}
			dir, err := a.ingestForEvaluation(cmd.Context(), &inputs)
			if dir != "" {
				defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
			}
			if err != nil {
				return err
			}
			c, err := a.measure(cmd.Context(), dir)
			if err != nil {
				return err
			}
			if err := c.Save(output); err != nil {
				return err
			}
			fmt.Fprintf(a.out, "%s: rates of %d stages, from %s and %s\n", output, len(c.Rates),
				plural(c.Nodes, "node"), plural(c.Edges, "edge"))
			return nil
		},
	}
	inputs.register(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "rates.json", "file to write")
	return cmd
}

func (a *app) measure(ctx context.Context, dir string) (c plan.Calibration, err error) {
	pipe, err := a.open(ctx, &pipelineFlags{store: dir})
	if err != nil {
		return c, err
	}
	meter := plan.NewMeter(pipe.store)
	shards := pipe.id.Shards
	worker := &staged.Worker{Store: meter, Resources: wiring.ResourcesOf(pipe.cfg, nil, pipe.progress, pipe.log),
		Log: func(ctx context.Context, cut map[int]int64) (staged.Log, error) {
			at, err := service.SourceAt(ctx, meter, shards, cut)
			if err != nil {
				return nil, err
			}
			return at.Log(), nil
		}}
	now, err := service.SourceAt(ctx, meter, shards, nil)
	if err != nil {
		return c, err
	}
	division, err := worker.Begin(ctx, pipe.builder(meter), staged.Options{Cut: now.Cut(), Shards: shards})
	if err != nil {
		return c, err
	}
	doc, err := worker.Run(ctx, division, tasks.Local{Workers: 1}, meter.Work(worker),
		func(s staged.Stage) { pipe.progress.Stage(s.Name, int64(s.Tasks)) })
	pipe.progress.Done()
	if err != nil {
		return c, err
	}
	var texts int64
	for r, err := range now.Rows(ctx) {
		if err != nil {
			return c, err
		}
		texts += int64(len(r.Text))
	}
	in := plan.Input{Nodes: int64(doc.Graph.Nodes), Edges: int64(doc.Graph.Links) / 2, TextBytes: texts,
		Cores: runtime.NumCPU()}
	return plan.Calibration{Machine: fmt.Sprintf("%d cores, %s/%s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH),
		When: time.Now().UTC().Truncate(time.Second), Nodes: in.Nodes, Edges: in.Edges, Text: in.TextBytes,
		Rates: meter.Rates(in, division)}, nil
}
