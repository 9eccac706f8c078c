package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/service"
	"giantstream/config"
	"giantstream/ingest/backfill"
)

// inputFlags name files to send and say which of their fields are what.
type inputFlags struct {
	nodes, edges []string

	id, label, src, dst, eventTime string
	text                           []string
	directed                       bool
}

func (f *inputFlags) register(c *cobra.Command) {
	fl := c.Flags()
	fl.StringArrayVar(&f.nodes, "nodes", nil, "files with nodes: `GLOB` of .jsonl, .csv or .parquet, also .gz and .zst, or s3://bucket/glob (repeatable)")
	fl.StringArrayVar(&f.edges, "edges", nil, "files with edges: `GLOB`, as --nodes (repeatable)")
	fl.StringVar(&f.id, "id", "", "field with the node's id (default id)")
	fl.StringArrayVar(&f.text, "text", nil, "field with the node's text; repeat to join several (default text)")
	fl.StringVar(&f.label, "label", "", "field with the node's class, for evaluation (default label)")
	fl.StringVar(&f.src, "src", "", "field with an edge's source id (default src)")
	fl.StringVar(&f.dst, "dst", "", "field with its destination, or destinations: also_bought[*] (default dst)")
	fl.StringVar(&f.eventTime, "event-time", "", "field with the time of the change (default: the file's modification time)")
	fl.BoolVar(&f.directed, "directed", false, "edges have a direction: only destinations are labels")
}

// apply puts the fields that were given over the configuration's.
func (f *inputFlags) apply(cfg *config.Config) {
	set := func(field *string, v string) {
		if v != "" {
			*field = v
		}
	}
	in := &cfg.Ingest
	set(&in.Nodes.ID, f.id)
	set(&in.Nodes.Label, f.label)
	set(&in.Edges.Src, f.src)
	set(&in.Edges.Dst, f.dst)
	set(&in.Nodes.EventTime, f.eventTime)
	set(&in.Edges.EventTime, f.eventTime)
	if len(f.text) > 0 {
		in.Nodes.Text = f.text
	}
	if f.directed {
		in.Undirected = false
	}
}

func (f *inputFlags) given() bool { return len(f.nodes)+len(f.edges) > 0 }

func (a *app) run() *cobra.Command {
	var (
		flags     pipelineFlags
		inputs    inputFlags
		untilIdle bool
		encoder   encoderFlags
		roleList  string
		asJSON    bool
	)
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the pipeline: as a service, or until everything is done",
		Long: `Run the pipeline: consume the topics, keep the graph, commit batches, refresh
generations and publish embeddings.

With --until-idle, run drains the sources, finishes a generation, publishes it
and exits. A run that was killed goes on where it stopped: start it again with
the same flags.

With --roles, a process takes on a part of the work only: stream consumes the
topics and keeps the graph, refresh builds generations, embed publishes
embeddings. Processes of different roles share the brokers and the store. Either
every process that streams embeds as well, or none does.

With --nodes and --edges, run sends these files through the topics first.
Without a configuration it starts a broker of its own and keeps everything
under --store; the newest generations/<g>/embeddings/*.parquet there is the
result.`,
		Example: `  giantstream run --nodes 'n/*.jsonl.gz' --edges 'e/*.jsonl.gz' --store ./out --until-idle
  giantstream run --nodes p.csv --id asin --text title --text brand --dst 'also_bought[*]' --edges p.csv --src asin --store ./out --until-idle
  giantstream run -c pipeline.yaml
  giantstream run -c pipeline.yaml --roles stream,embed
  giantstream run -c pipeline.yaml --until-idle --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if flags.file == "" && flags.store == "" && inputs.given() {
				flags.store = "./giantstream-data"
			}
			cfg, err := flags.load()
			if err != nil {
				return err
			}
			inputs.apply(cfg)
			encoder.apply(cfg)
			if flags.file == "" {
				forOneRun(cfg)
			}
			if err := check(cfg); err != nil {
				return err
			}
			roles, err := parseRoles(roleList, cfg)
			if err != nil {
				return err
			}
			nodes, edges, err := inputs.open(ctx, cfg)
			if err != nil {
				return err
			}
			level := cfg.Log.Level
			if untilIdle && flags.file == "" {
				level = ""
			}
			log, err := a.logger(level, cfg.Log.Format)
			if err != nil {
				return err
			}
			for _, w := range cfg.Warnings() {
				log.Warn(w)
			}
			store, err := openStore(ctx, cfg)
			if err != nil {
				return err
			}
			progress := console.New(a.err, log)
			service.Limit(cfg)
			s, err := service.Start(ctx, service.Options{Config: cfg, Store: store, Log: log, Roles: roles, Progress: progress})
			if err != nil {
				return err
			}
			if !untilIdle {
				return closing(s, runService(ctx, s, cfg, nodes, edges))
			}
			report, err := drainAndPublish(ctx, s, cfg, nodes, edges, progress)
			progress.Done()
			if err := closing(s, err); err != nil {
				return err
			}
			if asJSON {
				return writeJSON(a.out, report)
			}
			return report.print(a.out, cfg)
		},
	}
	flags.register(cmd)
	inputs.register(cmd)
	cmd.Flags().BoolVar(&untilIdle, "until-idle", false, "drain all sources, finish a generation, publish it, exit")
	cmd.Flags().StringVar(&roleList, "roles", service.AllRoles().String(), "what this process does: `LIST` of stream, refresh and embed")
	encoder.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "with --until-idle, print the report as JSON")
	return cmd
}

// forOneRun are the defaults of a run without a configuration file: windows
// as large as the memory allows, since nobody waits for the first embedding,
// and no ports but the broker's.
func forOneRun(cfg *config.Config) {
	cfg.Window.Time = 15 * time.Second
	cfg.HTTP.Listen = ""
	cfg.Shards = 4
}

// open finds the input files.
func (f *inputFlags) open(ctx context.Context, cfg *config.Config) (nodes, edges []backfill.Input, err error) {
	if nodes, err = openInputs(ctx, cfg, f.nodes); err != nil {
		return nil, nil, usageError{fmt.Errorf("--nodes: %w", err)}
	}
	if edges, err = openInputs(ctx, cfg, f.edges); err != nil {
		return nil, nil, usageError{fmt.Errorf("--edges: %w", err)}
	}
	return nodes, edges, nil
}

// runService sends the files, if any, and serves until a signal.
func runService(ctx context.Context, s *service.Service, cfg *config.Config, nodes, edges []backfill.Input) error {
	if len(nodes)+len(edges) > 0 {
		if _, err := service.Backfill(ctx, cfg, s.Client(), nodes, edges, nil); err != nil {
			return err
		}
	}
	if err := s.Run(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// parseRoles reads --roles. The embedded broker is reachable from its own
// process alone, which has to do everything then.
func parseRoles(list string, cfg *config.Config) (service.Roles, error) {
	roles, err := service.ParseRoles(list)
	if err == nil && cfg.Kafka.Embedded() && roles != service.AllRoles() {
		err = errors.New("the embedded broker runs inside one process, which takes all roles; name brokers in kafka.brokers")
	}
	if err != nil {
		return roles, usageError{fmt.Errorf("--roles: %w", err)}
	}
	return roles, nil
}

// drainAndPublish takes everything that is there as far as this process's
// roles reach: to the store, or to the sink.
func drainAndPublish(ctx context.Context, s *service.Service, cfg *config.Config, nodes, edges []backfill.Input, progress *console.Progress) (*runReport, error) {
	report := newRunReport(cfg)
	if len(nodes)+len(edges) > 0 {
		stats, err := service.Backfill(ctx, cfg, s.Client(), nodes, edges, progress)
		if err != nil {
			return nil, err
		}
		report.sent(stats)
	}
	if err := s.Drain(ctx); err != nil {
		return nil, err
	}
	report.lap("send and ingest")
	if r := s.Roles(); r.Refresh || r.Embed {
		doc, built, err := s.UpToDate(ctx)
		if err != nil {
			return nil, err
		}
		report.Generation, report.Built = doc, built
		report.lap("generation")
	}
	if s.Roles().Embed {
		if err := s.WaitPublished(ctx); err != nil {
			return nil, err
		}
		report.lap("publish")
	}
	var err error
	report.DeadLetters, err = s.DeadLetters(ctx)
	return report, err
}

// closing closes the service and keeps the first error.
func closing(s *service.Service, err error) error {
	if closeErr := s.Close(); err == nil {
		return closeErr
	}
	return err
}

func (a *app) backfill() *cobra.Command {
	var (
		flags  pipelineFlags
		inputs inputFlags
	)
	cmd := &cobra.Command{
		Use:   "backfill",
		Short: "Send files or objects to the pipeline's topics",
		Long: `Send nodes and edges from files, a directory or S3 to the input topics of a
running pipeline, with their own event times; an interrupted backfill resumes.
A pipeline on the embedded broker takes files directly: giantstream run --nodes.`,
		Example: `  giantstream backfill -c pipeline.yaml --nodes 's3://bucket/nodes/*.parquet' --edges 'edges/*.jsonl.gz'`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if !inputs.given() {
				return usageError{errors.New("give files with --nodes and --edges")}
			}
			cfg, err := flags.load()
			if err != nil {
				return err
			}
			inputs.apply(cfg)
			if err := check(cfg); err != nil {
				return err
			}
			if cfg.Kafka.Embedded() {
				return usageError{errors.New("the embedded broker runs inside 'giantstream run': give the files to that command")}
			}
			log, err := a.logger(cfg.Log.Level, cfg.Log.Format)
			if err != nil {
				return err
			}
			nodes, edges, err := inputs.open(ctx, cfg)
			if err != nil {
				return err
			}
			client, err := service.Connect(ctx, cfg)
			if err != nil {
				return err
			}
			defer client.Close()
			progress := console.New(a.err, log)
			stats, err := service.Backfill(ctx, cfg, client, nodes, edges, progress)
			progress.Done()
			if err != nil {
				return err
			}
			fmt.Fprintf(a.out, "sent %s node and %s edge records; %s too large, dead-lettered; %s sent by an earlier run\n",
				console.Count(stats.Nodes), console.Count(stats.Edges), console.Count(stats.Oversize), console.Count(stats.Resumed))
			return nil
		},
	}
	flags.register(cmd)
	inputs.register(cmd)
	return cmd
}
