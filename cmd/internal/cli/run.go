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
)

func runCommand(a *command.App) *cobra.Command { //nolint:gocyclo // one step after the other
	var (
		flags     command.PipelineFlags
		inputs    command.InputFlags
		untilIdle bool
		encoder   command.EncoderFlags
		roleList  string
		accepted  []string
		settings  bool
		asJSON    bool
	)
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
and serve answers at http.listen which nodes are similar (GET /similar/ID, POST
/similar, POST /embed), with all embeddings in memory.

With --nodes and --edges, run sends these files through the topics first.
Without a configuration it starts a broker of its own and keeps everything
under --store; the newest generations/<g>/embeddings/*.parquet there is the
result.`,
		Example: `  giantstream run --nodes 'n/*.jsonl.gz' --edges 'e/*.jsonl.gz' --store ./out --until-idle
  giantstream run --nodes p.csv --id asin --text title --text brand --dst 'also_bought[*]' ` +
			`--edges p.csv --src asin --list-separator ';' --store ./out --until-idle
  giantstream run --profile shopify --nodes products_export.csv --store ./out --until-idle
  giantstream run -c pipeline.yaml
  giantstream run -c pipeline.yaml --roles stream,embed
  giantstream run -c pipeline.yaml --roles stream,refresh,embed,serve
  giantstream run -c pipeline.yaml --until-idle --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if err := inputs.UseProfile(flags.Profile); err != nil {
				return err
			}
			if flags.File == "" && flags.Store == "" && inputs.Given() {
				flags.Store = "./giantstream-data"
			}
			load := func() (*config.Config, error) {
				cfg, err := flags.Load()
				if err != nil {
					return nil, err
				}
				inputs.Apply(cfg)
				encoder.Apply(cfg)
				return cfg, command.CheckConfig(cfg)
			}
			cfg, err := load()
			if err != nil {
				return err
			}
			roles, err := parseRoles(roleList, cfg)
			if err != nil {
				return err
			}
			for _, topic := range accepted {
				topics := wiring.TopicsOf(cfg)
				if known := append(topics.Inputs(), topics.Sources()...); !slices.Contains(known, topic) {
					return command.UsageError(fmt.Errorf("--accept-loss: no input topic is named %q; they are %s",
						topic, strings.Join(known, ", ")))
				}
			}
			nodes, edges, err := inputs.Open(ctx, cfg)
			if err != nil {
				return err
			}
			mapped, err := inputs.CheckMapping(ctx, cfg, nodes, edges)
			if err != nil {
				return err
			}
			level := cfg.Log.Level
			if untilIdle && flags.File == "" {
				level = ""
			}
			w, err := a.OpenWorkplace(ctx, cfg, level)
			if err != nil {
				return err
			}
			for _, warning := range cfg.Warnings() {
				w.Log.Warn(warning)
			}
			if roles.Refresh || roles.Embed || roles.Build || roles.Serve {
				closeDevice, err := a.OpenDevice(w)
				if err != nil {
					return err
				}
				defer closeDevice()
			}
			opts := service.Options{Config: w.Config, Store: w.Store, Log: w.Log, Roles: roles,
				Device: w.Device, Progress: w.Progress, AcceptLoss: accepted, AcceptSettings: settings,
				Status: status.Live(cfg), Load: untilIdle && len(nodes)+len(edges) > 0,
				Resent: len(nodes)+len(edges) > 0}
			var signals *hangups
			if flags.File != "" && !untilIdle {
				opts.Reload = load
				signals = catchHangups()
				defer signals.stop()
			}
			opts.Level = a.ChangeableLevel()
			s, err := service.Start(ctx, opts)
			if err != nil {
				return err
			}
			command.WarnOfMapping(w.Log, mapped)
			if !untilIdle {
				if signals != nil {
					signals.answerEach(func() { _ = s.Reload("SIGHUP") }) // the log has the error
				}
				return command.CloseService(s, runService(ctx, s, cfg, nodes, edges))
			}
			report, err := drainAndPublish(ctx, s, cfg, nodes, edges, w.Progress)
			w.Progress.Done()
			if err := command.CloseService(s, err); err != nil {
				return err
			}
			report.Mapped = mapped
			if asJSON {
				err = command.WriteJSON(a.Out, report)
			} else {
				err = report.print(a.Out, cfg)
			}
			if err == nil && (len(report.Lost) > 0 || report.Shrunk != "") {
				err = command.LossError{Lost: report.Lost, Shrunk: report.Shrunk}
			}
			return err
		},
	}
	flags.Register(cmd)
	flags.RegisterProfile(cmd)
	inputs.Register(cmd)
	cmd.Flags().StringSliceVar(&accepted, "accept-loss", nil,
		"go on without what these input `TOPICS` have lost, and read those that were created again from their start")
	cmd.Flags().BoolVar(&settings, "accept-settings", false,
		"go on with settings of the graph (mapping, mode, topics) that differ from those the store was made with")
	cmd.Flags().BoolVar(&untilIdle, "until-idle", false, "drain all sources, finish a generation, publish it, exit")
	cmd.Flags().StringVar(&roleList, "roles", service.AllRoles().String(),
		"what this process does: `LIST` of stream, refresh, embed, build and serve")
	encoder.Register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "with --until-idle, print the report as JSON")
	return cmd
}

// runService sends the files, if any, and serves until a signal.
func runService(ctx context.Context, s *service.Service, cfg *config.Config, nodes, edges []backfill.Input) error {
	if len(nodes)+len(edges) > 0 {
		if _, err := wiring.Backfill(ctx, cfg, s.Client(), nodes, edges, nil); err != nil {
			return err
		}
	}
	if err := s.Run(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// parseRoles parses --roles. A process with the embedded broker needs all roles, because no other
// process can reach that broker.
func parseRoles(list string, cfg *config.Config) (service.Roles, error) {
	roles, err := service.ParseRoles(list)
	if err == nil && cfg.Kafka.Embedded() && !roles.Whole() {
		err = errors.New("the embedded broker runs inside one process, which streams, refreshes and embeds; " +
			"name brokers in kafka.brokers")
	}
	if err == nil && roles.Serve && cfg.HTTP.Listen == "" {
		err = errors.New("serve answers over HTTP: set http.listen")
	}
	if err != nil {
		return roles, command.UsageError(fmt.Errorf("--roles: %w", err))
	}
	return roles, nil
}

// drainAndPublish brings all input as far as the roles of this process reach: into the store, or to
// the sink topic.
func drainAndPublish(ctx context.Context, s *service.Service, cfg *config.Config, nodes, edges []backfill.Input,
	progress *console.Progress) (*runReport, error) {
	report := newRunReport(cfg)
	if len(nodes)+len(edges) > 0 {
		stats, err := wiring.Backfill(ctx, cfg, s.Client(), nodes, edges, progress)
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
			return nil, withLetters(ctx, s, err)
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
	var err error
	if report.DeadLetters, err = s.DeadLetters(ctx); err == nil {
		report.Lost, err = s.Lost(ctx)
	}
	if err == nil {
		report.Shrunk, err = s.Shrunk(ctx)
	}
	return report, err
}

// withLetters adds the dead letters to an error that they may explain.
func withLetters(ctx context.Context, s *service.Service, err error) error {
	letters, listErr := s.DeadLetters(ctx)
	if listErr != nil || letters.Total == 0 {
		return err
	}
	return fmt.Errorf("%w\n%s: %s", err, command.Plural(letters.Total, "dead letter"), letters)
}
