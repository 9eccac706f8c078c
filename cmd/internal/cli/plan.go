package cli

import (
	"cmp"
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
	"giantstream/stream/commitlog"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/fit"
	"giantstream/train/plan"
)

// What a plan assumes of a graph of which only the nodes are known: as docs/SIZING.md.
const (
	assumedEdges = 5 // a node
	assumedText  = "500"
)

// planned is a plan as --json prints it, with what it is of.
type planned struct {
	Nodes     int64 `json:"nodes"`
	Edges     int64 `json:"edges"`
	TextBytes int64 `json:"text_bytes"`
	// Assumed are what was not given, and decides the estimate.
	Assumed []string `json:"assumed"`
	Rates   rates    `json:"rates"`
	// NotIncluded are stages that the estimate leaves out, by what a graph has them for.
	NotIncluded map[string][]string `json:"not_included"`
	*plan.Plan
}

// rates say where those of a plan are from.
type rates struct {
	Shipped bool       `json:"shipped"`
	Machine string     `json:"machine"`
	When    time.Time  `json:"when"`
	Graph   plan.Graph `json:"graph"`
	Encoder string     `json:"encoder"`
	Dim     int        `json:"dim"`
}

// planning is what the flags of plan say.
type planning struct {
	nodes, edges               command.Count
	text, memory, bandwidth    string
	encoder, rates             string
	labelFeatures, missingText string
	in                         plan.Input
	asJSON                     bool
}

func planCommand(a *command.App) *cobra.Command {
	var f planning
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Estimate what building a graph would cost: tasks, bytes, memory, time and money",
		Long: `Estimate a build ('giantstream build') of a graph that nobody has built yet,
stage by stage, on a number of machines. Nothing is read but the file of rates.

How many nodes there are is enough: what else is not given is assumed, and the
output says so. The rates are of a machine that it names. 'giantstream plan
calibrate' measures those of yours, by building a small graph.
The model and how far it was checked are in docs/PLANNING.md.`,
		Example: `  giantstream plan --nodes 10m
  giantstream plan --nodes 111e6 --edges 1.6e9 --node-text 1000 --encoder linear \
    --workers 16 --cores 8 --memory 16GiB
  giantstream plan --nodes 10m --rates rates.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(a, cmd) },
	}
	flags := cmd.Flags()
	flags.Var(&f.nodes, "nodes", "nodes of the graph, such as 250k, 10m or 111e6")
	flags.Var(&f.edges, "edges", fmt.Sprintf("edges, each once (default: %d a node)", assumedEdges))
	flags.StringVar(&f.text, "node-text", assumedText, "bytes of text of a node, in the mean")
	flags.IntVar(&f.in.Classes, "classes", 0, "different classes of the nodes, for evaluation (default: none)")
	flags.IntVar(&f.in.Workers, "workers", 1, "machines")
	flags.IntVar(&f.in.Cores, "cores", 8, "cores of each machine")
	flags.StringVar(&f.memory, "memory", "4GiB", "memory of each machine")
	flags.StringVar(&f.bandwidth, "bandwidth", "1GiB", "bytes a second between a machine and the store")
	flags.StringVar(&f.encoder, "encoder", "", "train.encoder (default: that of --rates, or else "+
		config.Default().Train.Encoder+")")
	flags.StringVar(&f.labelFeatures, "label-features", string(pifa.PIFA), "featurize.label_features")
	flags.StringVar(&f.missingText, "missing-text", fit.Skip, "embed.missing_text")
	flags.BoolVar(&f.in.Refresh, "refresh", false, "there is a generation before, to compare with")
	flags.Float64Var(&f.in.Prices.CoreHour, "core-hour", 0.05, "price of a core for an hour")
	flags.Float64Var(&f.in.Prices.GBMonth, "gb-month", 0.023, "price of 10⁹ bytes in the store for 30 days")
	flags.StringVar(&f.rates, "rates", "", "file of rates that 'giantstream plan calibrate' has written "+
		"(default: those that come with the program)")
	flags.BoolVar(&f.asJSON, "json", false, "print the estimate as JSON")
	cmd.AddCommand(calibrate(a))
	return cmd
}

func (f *planning) run(a *command.App, cmd *cobra.Command) error {
	c, err := f.calibration()
	if err != nil {
		return command.UsageError(err)
	}
	if !cmd.Flags().Changed("edges") {
		f.edges = assumedEdges * f.nodes
	}
	if err := f.read(); err != nil {
		return command.UsageError(err)
	}
	out := planned{Nodes: f.in.Nodes, Edges: f.in.Edges, TextBytes: f.in.TextBytes,
		Assumed: f.assumed(c, cmd.Flags().Changed),
		Rates:   rates{f.rates == "", c.Machine, c.When, c.Graph, c.Encoder, c.Dim}, NotIncluded: map[string][]string{}}
	for _, u := range plan.Unplanned {
		out.NotIncluded[u.For] = u.Stages
	}
	if out.Plan, err = plan.Estimate(f.in, c); err != nil {
		return err
	}
	if f.asJSON {
		return command.WriteJSON(a.Out, out)
	}
	return printEstimate(a, f.in, out)
}

// calibration returns the rates to plan with.
func (f *planning) calibration() (plan.Calibration, error) {
	if f.rates == "" {
		return plan.Shipped(cmp.Or(f.encoder, config.Default().Train.Encoder))
	}
	c, err := plan.Load(f.rates)
	if err == nil && f.encoder != "" && f.encoder != c.Encoder {
		err = fmt.Errorf("the rates of %s are of the encoder %s, not %s: 'giantstream plan calibrate --encoder %[3]s'",
			f.rates, c.Encoder, f.encoder)
	}
	if err != nil {
		err = fmt.Errorf("--rates: %w", err)
	}
	return c, err
}

// read makes the flags the input of an estimate.
func (f *planning) read() error {
	if f.nodes == 0 {
		return errors.New("--nodes is missing, or 0: how many nodes the graph has, such as 10m")
	}
	if _, err := pifa.ParseKind(f.labelFeatures); err != nil {
		return fmt.Errorf("--label-features: %w", err)
	}
	if !slices.Contains(fit.MissingTexts, f.missingText) {
		return fmt.Errorf("--missing-text %s: use one of %s", f.missingText, strings.Join(fit.MissingTexts, ", "))
	}
	sizes := map[string]config.Size{}
	for _, s := range []struct{ flag, text string }{{"--memory", f.memory}, {"--bandwidth", f.bandwidth},
		{"--node-text", f.text}} {
		n, err := config.ParseSize(s.text)
		if err != nil {
			return fmt.Errorf("%s %s: %w", s.flag, s.text, err)
		}
		sizes[s.flag] = n
	}
	f.in.Nodes, f.in.Edges, f.in.Shards = int64(f.nodes), int64(f.edges), f.in.Workers
	f.in.Features, f.in.Fill = f.labelFeatures != string(pifa.PIFA), f.missingText == fit.Neighbours
	f.in.Memory, f.in.Bandwidth = int64(sizes["--memory"]), float64(sizes["--bandwidth"])
	const tooMany = 1 << 62 // Validate says so
	f.in.TextBytes = int64(min(tooMany, float64(f.nodes)*float64(sizes["--node-text"])))
	return f.in.Validate()
}

// assumed are the facts that no flag gives.
func (f *planning) assumed(c plan.Calibration, given func(flag string) bool) []string {
	all := []string{}
	if !given("edges") {
		all = append(all, fmt.Sprintf("%d edges a node (--edges)", assumedEdges))
	}
	if !given("node-text") {
		all = append(all, assumedText+" bytes of text a node (--node-text)")
	}
	if !given("classes") {
		all = append(all, "no classes (--classes)")
	}
	if f.rates == "" && f.encoder == "" {
		all = append(all, "the encoder "+c.Encoder+" (--encoder)")
	}
	return all
}

func printEstimate(a *command.App, in plan.Input, e planned) error {
	p := &command.Printer{Out: a.Out}
	p.Heading("%s, %s, %s of text: %s, %s of labels", command.Plural(in.Nodes, "node"),
		command.Plural(in.Edges, "edge"), console.Bytes(in.TextBytes), command.Plural(e.Partitions, "partition"),
		command.Plural(e.Ranges, "range"))
	w := tabwriter.NewWriter(p, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "stage\ttasks\tread\tshuffled\twritten\ttask memory\tin all\tcore-hours\ttime\tmoney\t")
	for _, s := range append(e.Stages, e.Total) {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%.2f\t%s\t%.2f\t\n", s.Name, s.Tasks, console.Bytes(s.ReadBytes),
			console.Bytes(s.ShuffledBytes), console.Bytes(s.WrittenBytes), console.Bytes(s.Memory),
			console.Bytes(s.Machine), s.CoreSeconds/3600,
			console.Duration(time.Duration(s.Seconds*float64(time.Second))), s.Money)
	}
	p.Keep(w.Flush())
	p.Line("\n%s of %s and %s, %s/s to the store, %s at a time on each ('build --workers %d\n--partitions %d').",
		command.Plural(in.Workers, "machine"), command.Plural(in.Cores, "core"), console.Bytes(in.Memory),
		console.Bytes(int64(in.Bandwidth)), command.Plural(e.AtATime, "task"), e.AtATime, e.Partitions)
	if len(e.Assumed) > 0 {
		p.Line("Assumed: %s.", strings.Join(e.Assumed, ", "))
	}
	from := "yours"
	if e.Rates.Shipped {
		from = "those that come with giantstream"
	}
	p.Line("Rates: %s, of %s, measured on %s\nwith %s, the encoder %s and embedding.dim %d.", from, e.Rates.Machine,
		e.Rates.When.Format(time.DateOnly), command.Plural(e.Rates.Graph.Nodes, "node"), e.Rates.Encoder, e.Rates.Dim)
	if e.Rates.Shipped {
		p.Line("'giantstream plan calibrate' measures those of your machine, for --rates.")
	}
	var without []string
	for _, u := range plan.Unplanned {
		without = append(without, fmt.Sprintf("%s (%s)", u.For, strings.Join(u.Stages, ", ")))
	}
	p.Line("Not in it: the stages of %s;\nthe load of the files or topics before.", strings.Join(without, ", of "))
	return p.Err
}

// calibrate builds a graph in stages, one task at a time, and writes what each stage cost.
func calibrate(a *command.App) *cobra.Command {
	var (
		inputs             command.InputFlags
		encoder            command.EncoderFlags
		output             string
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
			set := func(cfg *config.Config) {
				encoder.Apply(cfg)
				cfg.Embedding.Dim, cfg.Featurize.ProjectionDim = dim, projectionDim
			}
			checked := config.Local()
			if set(&checked); checked.Validate() != nil { // before minutes of ingest
				return command.UsageError(checked.Validate())
			}
			dir, err := a.IngestApart(cmd.Context(), &inputs)
			if dir != "" {
				defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
			}
			if err != nil {
				return err
			}
			c, err := measure(cmd.Context(), a, dir, set)
			if err != nil {
				return err
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
	encoder.Register(cmd)
	f.IntVar(&dim, "dim", defaults.Embedding.Dim, "embedding.dim")
	f.IntVar(&projectionDim, "projection-dim", defaults.Featurize.ProjectionDim, "featurize.projection_dim")
	return cmd
}

// checkSize refuses a graph that is too small to measure with.
func checkSize(ctx context.Context, pipe *command.Pipeline) error {
	var nodes int64
	for shard := range pipe.Identity.Shards {
		m, err := commitlog.Head(ctx, pipe.Store, shard)
		if err != nil {
			return err
		}
		if m != nil {
			nodes += m.Nodes
		}
	}
	if nodes < plan.LeastNodes {
		return fmt.Errorf("the graph has %s: rates need one of %d or more", command.Plural(nodes, "node"),
			plan.LeastNodes)
	}
	return nil
}

func measure(ctx context.Context, a *command.App, dir string, set func(*config.Config)) (
	c plan.Calibration, err error) {
	pipe, err := a.Open(ctx, &command.PipelineFlags{Store: dir}, set)
	if err != nil {
		return c, err
	}
	if err := checkSize(ctx, pipe); err != nil {
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
