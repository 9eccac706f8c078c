package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/client"
	"giantstream/ingest/preview"
	"giantstream/sink"
	"giantstream/stream/commitlog"
)

// Remap is 'giantstream remap'.
func Remap(a *command.App) *cobra.Command {
	var f remapFlags
	cmd := &cobra.Command{
		Use:   "remap",
		Short: "Read a pipeline's records again with another mapping, and take over",
		Long: `A store keeps what its mapping (ingest.*, kafka.topics) has made of the records, so
a pipeline does not start with another mapping. remap reads the topics again with
the mapping of a configuration, into the store of that configuration, beside the
pipeline that runs. When it has caught up, with a generation of its own, it takes
the topics of embeddings over: the other pipeline ends, and workers are started
with the new configuration. Sinks follow by themselves.

The configuration has another pipeline, store and state_dir than that of before
(and another kafka.group and kafka.topics.mirror, where these are set). --from names
the store of before. Files are given again, with the flags of 'run', where the
broker is inside the process.

--dry-run changes nothing: it says how the mapping differs from that of a store (the
configuration's without --from), what the difference needs, and what it changes in
the first records. A run that was broken off goes on by the same command. The store
of before stays; the way back is the same command with its configuration, and --from
with the new store.`,
		Example: `  giantstream remap -c new.yaml --from s3://bucket/catalog --dry-run
  giantstream remap -c new.yaml --from s3://bucket/catalog
  giantstream run -c new.yaml
  giantstream remap -c before.yaml --from s3://bucket/catalog-2        # the way back
  giantstream remap --from ./out --store ./out-2 --nodes p.csv --text title`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), a) },
	}
	f.register(cmd)
	return cmd
}

type remapFlags struct {
	pipeline command.PipelineFlags
	inputs   command.InputFlags
	from     string
	dryRun   bool
	asJSON   bool
	records  int64

	acceptMissing bool
}

func (f *remapFlags) register(cmd *cobra.Command) {
	f.pipeline.Register(cmd)
	f.pipeline.RegisterProfile(cmd)
	f.inputs.Register(cmd)
	f.inputs.RegisterOrders(cmd)
	cmd.Flags().StringVar(&f.from, "from", "", "the `STORE` that the pipeline has now")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what differs and what it changes, and do nothing")
	cmd.Flags().Int64Var(&f.records, "records", 1000, "how many records to compare of each input")
	cmd.Flags().BoolVar(&f.acceptMissing, "accept-missing", false,
		"hand over although nodes of the store of before are missing in the new one, and delete their embeddings")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
}

// remapping is a change of the mapping of a pipeline.
type remapping struct {
	cfg    *config.Config // of afterwards
	before *config.Config // the same, with the former mapping
	from   sink.Store
	id     commitlog.Identity // of from
	report remapReport
}

// remapReport is what --dry-run prints.
type remapReport struct {
	From     string            `json:"from"`
	Pipeline string            `json:"pipeline"`
	ID       string            `json:"id"`
	Changes  []wiring.Remapped `json:"changes"`
	// Sample compares the first records of each input. It is nil if none could be read.
	Sample []preview.Comparison `json:"sample"`
}

func (f *remapFlags) run(ctx context.Context, a *command.App) error {
	if !f.dryRun && f.from == "" {
		return command.UsageError(errors.New("name the store of before with --from, or give --dry-run"))
	}
	if f.records < 1 || f.records > command.CheckRecords {
		return command.UsageError(fmt.Errorf("--records: give a number from 1 to %s",
			console.Count(command.CheckRecords)))
	}
	r, err := f.open(ctx)
	if err != nil {
		return err
	}
	if !f.dryRun {
		return f.remap(ctx, a, r)
	}
	if r.report.Sample, err = f.sample(ctx, r); err != nil {
		return err
	}
	if f.asJSON {
		err = command.WriteJSON(a.Out, r.report)
	} else {
		err = r.print(a)
	}
	if err == nil {
		err = r.refuse()
	}
	return err
}

// open loads the configuration of afterwards and the mapping of the former store.
func (f *remapFlags) open(ctx context.Context) (*remapping, error) {
	if err := f.inputs.UseProfile(f.pipeline.Profile); err != nil {
		return nil, err
	}
	cfg, err := f.load()
	if err != nil {
		return nil, err
	}
	f.inputs.Apply(cfg)
	if err := command.CheckConfig(cfg); err != nil {
		return nil, err
	}
	r := &remapping{cfg: cfg}
	if r.from, err = openFrom(ctx, cfg, cmp.Or(f.from, cfg.Store)); err != nil {
		return nil, err
	}
	r.id, err = commitlog.LoadIdentity(ctx, r.from)
	switch {
	case errors.Is(err, sink.ErrNotFound):
		return nil, command.UsageError(fmt.Errorf("%s holds no pipeline: name the store of before with --from",
			r.from.URL()))
	case err != nil:
		return nil, err
	case r.id.Settings == nil:
		return nil, fmt.Errorf("%s was made by an older release and does not say how records were read: start the "+
			"pipeline once with the configuration of before", r.from.URL())
	case r.id.Shards != cfg.Shards:
		return nil, command.UsageError(fmt.Errorf("the store has %d shards, and the configuration %d: change the "+
			"mapping alone, and then the shards ('giantstream reshard')", r.id.Shards, cfg.Shards))
	}
	if r.before, err = wiring.MappedBefore(r.id, cfg); err != nil {
		return nil, err
	}
	r.report = remapReport{From: r.from.URL(), Pipeline: r.id.Name, ID: r.id.ID, Changes: wiring.Remapping(r.id, cfg)}
	return r, nil
}

// load returns the configuration of afterwards. Without a file, what no flag changes is as the former store has it.
func (f *remapFlags) load() (*config.Config, error) {
	if f.pipeline.File != "" || f.from == "" {
		return f.pipeline.Load()
	}
	of := f.pipeline
	of.Store = f.from
	cfg, err := of.Load()
	if err == nil && f.pipeline.Store != "" {
		err = command.PlaceAt(cfg, f.pipeline.Store)
	}
	return cfg, err
}

// sample maps the first records of the files, or else of the topics, both ways. Without either it is nil.
func (f *remapFlags) sample(ctx context.Context, r *remapping) ([]preview.Comparison, error) {
	var read func(cfg *config.Config) (*preview.Preview, error)
	switch {
	case f.inputs.Given():
		files, err := f.inputs.Open(ctx, r.cfg)
		if err != nil {
			return nil, err
		}
		read = func(cfg *config.Config) (*preview.Preview, error) {
			return command.PreviewFiles(ctx, f.inputs.PreviewOptions(cfg, f.records, int(f.records)), files)
		}
	case r.cfg.Kafka.Embedded():
		return nil, nil
	default:
		opts, err := wiring.ClientOptions(r.cfg)
		if err != nil {
			return nil, err
		}
		from, err := client.New(opts)
		if err != nil {
			return nil, err
		}
		defer from.Close()
		read = func(cfg *config.Config) (*preview.Preview, error) {
			return wiring.PreviewTopics(ctx, cfg, from, wiring.PreviewOf(cfg, f.records, int(f.records)))
		}
	}
	before, err := read(r.before)
	if err != nil {
		return nil, err
	}
	after, err := read(r.cfg)
	if err != nil {
		return nil, err
	}
	return preview.Compare(before, after), nil
}

func (r *remapping) print(a *command.App) error {
	p := &command.Printer{Out: a.Out}
	p.Line("pipeline %s (id %s) in %s", r.id.Name, r.id.ID, r.from.URL())
	if len(r.report.Changes) == 0 {
		p.Line("The mapping is that of the store: nothing is to be read again.")
		return p.Err
	}
	p.Line("")
	w := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FIELD\tSTORE\tCONFIGURATION\tNEEDS")
	for _, c := range r.report.Changes {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.Field, console.Plain(cmp.Or(c.From, `""`)),
			console.Plain(cmp.Or(c.To, `""`)), c.Needs)
	}
	p.Keep(w.Flush())
	r.printSample(p)
	return p.Err
}

// shown is how many characters of a value are shown.
const shown = 100

func (r *remapping) printSample(p *command.Printer) {
	p.Line("")
	if r.report.Sample == nil {
		p.Line("The broker is inside the process that runs: give the files, with the flags of 'run', to see what " +
			"changes in their records.")
	}
	for _, s := range r.report.Sample {
		of := "the"
		if s.More {
			of = "the first"
		}
		if len(s.Changes) == 0 {
			p.Line("%s: %s %s say the same", console.Plain(s.Input), of, command.Plural(s.Records, "record"))
		}
		for _, c := range s.Changes {
			p.Line("%s: %s of %s %s have another %s, such as %s of %s:", console.Plain(s.Input),
				console.Count(c.Records), of, command.Plural(s.Records, "record"), c.What, command.Shorten(c.ID, shown),
				console.Plain(c.Where))
			p.Line("  before  %s", cmp.Or(command.Shorten(c.Before, shown), `""`))
			p.Line("  after   %s", cmp.Or(command.Shorten(c.After, shown), `""`))
		}
		if s.DeadBefore != s.DeadAfter {
			p.Line("%s: %s before, %s after", console.Plain(s.Input),
				command.Plural(s.DeadBefore, "dead letter"), console.Count(s.DeadAfter))
		}
	}
}

// errOtherNodes: ids of nodes are read from another field.
var errOtherNodes = errors.New("ids of nodes are read from another field: these are other nodes, of whose ids " +
	"consumers know none. Start a new pipeline, with a store and an embeddings topic of its own, and lead its " +
	"readers there")

// refuse says why the change cannot be made; nil if it can.
func (r *remapping) refuse() error {
	for _, c := range r.report.Changes {
		if c.OtherNodes {
			return command.UsageError(fmt.Errorf("%s: %w", c.Field, errOtherNodes))
		}
	}
	return nil
}
