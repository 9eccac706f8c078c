package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/service"
	"giantstream/cmd/internal/status"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/backfill"
	"giantstream/ingest/preview"
	"giantstream/train/generation"
)

func runCommand(a *command.App) *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the pipeline: as a service, or until everything is done",
		Long: `Run the pipeline: consume the topics, keep the graph, commit batches, refresh
generations and publish embeddings.

With --until-idle, run drains the sources, finishes a generation, publishes it
and exits. A run that was killed continues where it stopped: start it again with
the same flags. If records were deleted from the topics before they were read, it
finishes without them, says which, and exits with code 3 until --accept-loss.

On SIGHUP a service reads its configuration file again, and takes over what can
change while it runs ('config example' marks it); GET and PUT /config at http.listen
show and change the same.

With --roles, a process does a part of the work only: stream consumes the
topics and keeps the graph, refresh builds generations, embed publishes
embeddings. Processes of different roles share the brokers and the store. Either
every process that streams embeds as well, or none does. Two roles have to be
named: build does tasks of builds ('giantstream build --engine kafka'),
and serve answers at http.listen which nodes are similar and what goes with them
(GET /similar/ID, GET /goes-with, POST /similar, POST /embed), with all
embeddings in memory.

With --nodes and --edges, run sends these files through the topics first.
Without a configuration it starts a broker of its own and keeps everything
under --store; the newest generations/<g>/embeddings/*.parquet there is the
result.`,
		Example: `  giantstream run --nodes 'n/*.jsonl.gz' --edges 'e/*.jsonl.gz' --store ./out --until-idle
  giantstream run --nodes p.csv --id asin --text title --text brand --dst 'also_bought[*]' ` +
			`--edges p.csv --src asin --list-separator ';' --store ./out --until-idle
  giantstream run --profile shopify --nodes products_export.csv --store ./out --until-idle
  giantstream run --profile shopify --nodes products_export.csv --store ./out --until-idle --snapshot
  giantstream run --nodes n.jsonl --store ./out --until-idle --set ingest.external.model=bge-small \
    --set ingest.external.dimensions=384 --set ingest.external.url=http://localhost:8080/v1/embeddings
  giantstream run -c pipeline.yaml
  giantstream run -c pipeline.yaml --roles stream,embed
  giantstream run -c pipeline.yaml --roles stream,refresh,embed,serve
  giantstream run -c pipeline.yaml --until-idle --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(cmd.Context(), a) },
	}
	flags.register(cmd)
	return cmd
}

// runFlags say what to run, with which files, and until when.
type runFlags struct {
	pipeline  command.PipelineFlags
	inputs    command.InputFlags
	encoder   command.EncoderFlags
	roles     string
	untilIdle bool
	asJSON    bool

	acceptLoss     []string
	acceptSettings bool
}

func (f *runFlags) register(cmd *cobra.Command) {
	f.pipeline.Register(cmd)
	f.pipeline.RegisterProfile(cmd)
	f.inputs.Register(cmd)
	f.inputs.RegisterOrders(cmd)
	f.inputs.RegisterOrderKeep(cmd)
	f.inputs.RegisterSnapshot(cmd)
	cmd.Flags().StringSliceVar(&f.acceptLoss, "accept-loss", nil,
		"go on without what these input `TOPICS` have lost, and read those that were created again from their start")
	cmd.Flags().BoolVar(&f.acceptSettings, "accept-settings", false,
		"go on with settings of the graph (mapping, mode, topics) that differ from those the store was made with")
	cmd.Flags().BoolVar(&f.untilIdle, "until-idle", false, "drain all sources, finish a generation, publish it, exit")
	cmd.Flags().StringVar(&f.roles, "roles", service.AllRoles().String(),
		"what this process does: `LIST` of stream, refresh, embed, build and serve")
	f.encoder.Register(cmd)
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "with --until-idle, print the report as JSON")
}

func (f *runFlags) run(ctx context.Context, a *command.App) error {
	r, err := f.prepare(ctx, a)
	if err != nil {
		return err
	}
	if r.roles.Refresh || r.roles.Embed || r.roles.Build || r.roles.Serve {
		closeDevice, err := a.OpenDevice(r.Workplace)
		if err != nil {
			return err
		}
		defer closeDevice()
	}
	if f.untilIdle {
		return f.runUntilIdle(ctx, a, r)
	}
	return f.runService(ctx, a, r)
}

// preparedRun is a run whose configuration and files are good, before its service starts.
type preparedRun struct {
	*command.Workplace
	roles  service.Roles
	files  backfill.Sources
	mapped *preview.Preview // of the first records of the files, nil without files
}

// prepare loads the configuration, checks the flags, the first records of the files and the model that training starts
// from, and opens the store.
func (f *runFlags) prepare(ctx context.Context, a *command.App) (*preparedRun, error) {
	if err := f.inputs.UseProfile(f.pipeline.Profile); err != nil {
		return nil, err
	}
	if f.pipeline.File == "" && f.pipeline.Store == "" && f.inputs.Given() {
		f.pipeline.Store = "./giantstream-data"
	}
	cfg, err := f.load()
	if err != nil {
		return nil, err
	}
	r := &preparedRun{}
	if r.roles, err = parseRoles(f.roles, cfg); err != nil {
		return nil, err
	}
	if err := checkInputTopics(f.acceptLoss, cfg); err != nil {
		return nil, err
	}
	if r.files, err = f.inputs.Open(ctx, cfg); err != nil {
		return nil, err
	}
	if r.mapped, err = f.inputs.CheckMapping(ctx, cfg, r.files); err != nil {
		return nil, err
	}
	// A model that is named here, rather than by the store's last generation.
	if named := f.pipeline.File != "" || f.encoder.ModelGiven(); named && (r.roles.Refresh || r.roles.Build) {
		if err := wiring.SettingsOf(cfg).CheckEncoder(); err != nil {
			return nil, command.UsageError(err)
		}
	}
	level := cfg.Log.Level
	if f.untilIdle && f.pipeline.File == "" {
		level = ""
	}
	if r.Workplace, err = a.OpenWorkplace(ctx, cfg, level); err != nil {
		return nil, err
	}
	for _, warning := range cfg.Warnings() {
		r.Log.Warn(warning)
	}
	return r, nil
}

// load returns the configuration with the flags over it. A service loads it again on SIGHUP.
func (f *runFlags) load() (*config.Config, error) {
	cfg, err := f.pipeline.Load()
	if err != nil {
		return nil, err
	}
	f.inputs.Apply(cfg)
	f.encoder.Apply(cfg)
	// A run of a store alone listens nowhere by default. One that is to answer listens where a service does.
	roles, err := service.ParseRoles(f.roles)
	if err == nil && roles.Serve && f.pipeline.File == "" && cfg.HTTP.Listen == "" {
		cfg.HTTP.Listen = config.Default().HTTP.Listen
	}
	return cfg, command.CheckConfig(cfg)
}

// parseRoles parses --roles. A process with the embedded broker needs all roles, because no other
// process can reach that broker.
func parseRoles(list string, cfg *config.Config) (service.Roles, error) {
	roles, err := service.ParseRoles(list)
	if err == nil && cfg.Kafka.Embedded() && !roles.Complete() {
		err = errors.New("the embedded broker runs inside one process, which streams, refreshes and embeds; " +
			"name brokers in kafka.brokers")
	}
	if err == nil && roles.Serve && cfg.HTTP.Listen == "" {
		err = errors.New("serve answers over HTTP: set http.listen, as to 127.0.0.1:9464")
	}
	if err != nil {
		return roles, command.UsageError(fmt.Errorf("--roles: %w", err))
	}
	return roles, nil
}

// checkInputTopics refuses topics of --accept-loss that the pipeline does not read.
func checkInputTopics(accepted []string, cfg *config.Config) error {
	topics := wiring.TopicsOf(cfg)
	known := append(topics.Inputs(), topics.Sources()...)
	for _, topic := range accepted {
		if !slices.Contains(known, topic) {
			return command.UsageError(fmt.Errorf("--accept-loss: no input topic is named %q; they are %s",
				topic, strings.Join(known, ", ")))
		}
	}
	return nil
}

// serviceOptions are the options of the run's service, but for those of one that reloads its configuration.
func (f *runFlags) serviceOptions(a *command.App, r *preparedRun) service.Options {
	return service.Options{Config: r.Config, Store: r.Store, Log: r.Log, Level: a.ChangeableLevel(), Roles: r.roles,
		Device: r.Device, Progress: r.Progress, AcceptLoss: f.acceptLoss, AcceptSettings: f.acceptSettings,
		AllowUnmatched: f.inputs.AllowsUnmatched(),
		Status:         status.Live(r.Config), Load: f.untilIdle && r.files.NonEmpty(), Resent: r.files.NonEmpty()}
}

// start starts the service. A mapping that does not fit the records is a usage error.
func start(ctx context.Context, o service.Options) (*service.Service, error) {
	s, err := service.Start(ctx, o)
	if errors.Is(err, preview.ErrMapping) {
		err = command.UsageError(err)
	}
	return s, err
}

// runService sends the files, if any, and serves until a signal.
func (f *runFlags) runService(ctx context.Context, a *command.App, r *preparedRun) error {
	opts := f.serviceOptions(a, r)
	var signals *hangups
	if f.pipeline.File != "" {
		opts.Reload = f.load
		signals = catchHangups()
		defer signals.stop()
	}
	s, err := start(ctx, opts)
	if err != nil {
		return err
	}
	command.WarnOfMapping(r.Log, r.mapped)
	if signals != nil {
		signals.answerEach(func() { _ = s.Reload("SIGHUP") }) // the log has the error
	}
	if r.files.NonEmpty() {
		if _, err := wiring.Backfill(ctx, r.Config, s.Client(), r.files, nil); err != nil {
			return command.CloseService(s, err)
		}
	}
	err = s.Run(ctx)
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return command.CloseService(s, err)
}

// runUntilIdle ingests and publishes all input, prints the report, and returns an error if records are lost.
func (f *runFlags) runUntilIdle(ctx context.Context, a *command.App, r *preparedRun) error {
	s, err := start(ctx, f.serviceOptions(a, r))
	if err != nil {
		return err
	}
	command.WarnOfMapping(r.Log, r.mapped)
	report, err := drainAndPublish(ctx, s, r.Config, r.files, r.Progress)
	r.Progress.Done()
	if err := command.CloseService(s, err); err != nil {
		return err
	}
	report.Mapped = r.mapped
	if f.asJSON {
		err = command.WriteJSON(a.Out, report)
	} else {
		err = report.print(a.Out, r.Config)
	}
	if err == nil && (len(report.Lost) > 0 || report.Shrunk != "") {
		err = command.LossError{Lost: report.Lost, Shrunk: report.Shrunk}
	}
	return err
}

// drainAndPublish brings all input as far as the roles of this process reach: into the store, or to
// the sink topic.
func drainAndPublish(ctx context.Context, s *service.Service, cfg *config.Config, files backfill.Sources,
	progress *console.Progress) (*runReport, error) {
	report := newRunReport(cfg)
	if files.NonEmpty() {
		stats, err := wiring.Backfill(ctx, cfg, s.Client(), files, progress)
		if err != nil {
			return nil, err
		}
		report.sent(stats)
	}
	if err := s.Drain(ctx); err != nil {
		return nil, err
	}
	var err error
	if report.Read, err = s.Outcomes(ctx); err != nil {
		return nil, err
	}
	report.lap("send and ingest")
	if r := s.Roles(); r.Refresh || r.Embed {
		doc, built, err := s.UpToDate(ctx)
		if err != nil {
			return nil, explain(ctx, s, report.Sent, err)
		}
		report.Generation, report.Built, report.Refused, report.Because = doc, built, s.Refused(), s.Because()
		report.lap("generation")
	}
	if s.Roles().Embed {
		if err := s.WaitPublished(ctx); err != nil {
			return nil, err
		}
		report.lap("publish")
	}
	if report.DeadLetters, err = s.DeadLetters(ctx); err == nil {
		report.Lost, err = s.Lost(ctx)
	}
	if err == nil {
		report.Shrunk, err = s.Shrunk(ctx)
	}
	return report, err
}

// explain adds to an error what may be the reason of it: the dead letters, and files that sent nothing.
func explain(ctx context.Context, s *service.Service, sent *backfill.Stats, err error) error {
	if letters, listErr := s.DeadLetters(ctx); listErr == nil && letters.Total > 0 {
		err = fmt.Errorf("%w\n%s: %s", err, command.Plural(letters.Total, "dead letter"), letters)
	}
	if sent != nil && errors.Is(err, generation.ErrTooFew) {
		for _, line := range idleLines(&sent.Idle) {
			err = fmt.Errorf("%w\n%s", err, line)
		}
	}
	return err
}
