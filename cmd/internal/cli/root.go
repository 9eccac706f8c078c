package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/buildinfo"
	"giantstream/cmd/internal/console"
	"giantstream/stream/commitlog"
	"giantstream/train/encoders/bert/compute/devices"
)

// Exit codes, documented in `giantstream help exit-codes`.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitLost        = 3
	exitInterrupted = 130
)

// usageError is an error in the command line or the configuration. Running the same command again
// cannot help.
type usageError struct{ err error }

// UsageError marks an error as one of usage.
func UsageError(err error) error { return usageError{err} }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// lossError says that a command has done all that it could, and that records are missing for good.
type lossError struct {
	lost   []commitlog.ShardLost
	shrunk string
}

func (e lossError) Error() string {
	const most = 10
	var b strings.Builder
	b.WriteString("finished, but records are missing.")
	if e.shrunk != "" {
		fmt.Fprintf(&b, "\nWithout a trace: %s. Run the same command with all files.", e.shrunk)
	}
	if len(e.lost) == 0 {
		return b.String()
	}
	b.WriteString("\nThe topics deleted these before they were read:")
	for i, l := range e.lost {
		if i == most {
			fmt.Fprintf(&b, "\n  and %d more ranges: see 'giantstream status'", len(e.lost)-most)
			break
		}
		fmt.Fprintf(&b, "\n  %s", l)
	}
	b.WriteString("\nSend them again if you can, raise the topic's retention, and accept the loss with " +
		"'giantstream run --accept-loss TOPIC'")
	return b.String()
}

// app carries what every command shares.
type app struct {
	out, err  io.Writer
	logLevel  string
	logFormat string
	// level is that of the newest logger.
	level   *slog.LevelVar
	drivers devices.Drivers
}

// Run executes one command line and returns the process's exit code.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer, drivers devices.Drivers) int {
	a := &app{out: stdout, err: stderr, drivers: drivers}
	return a.execute(ctx, a.root(), args)
}

// execute executes one command line of a program.
func (a *app) execute(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitOK
	case ctx.Err() != nil:
		fmt.Fprintf(a.err, "%s: interrupted; the next run goes on where this one stopped\n", root.Name())
		return exitInterrupted
	}
	fmt.Fprintf(a.err, "%s: %s\n", root.Name(), console.PlainLines(err.Error()))
	if errors.As(err, new(usageError)) {
		return exitUsage
	}
	if errors.As(err, new(lossError)) {
		return exitLost
	}
	return exitFailed
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "giantstream",
		Short: "Graph-aware embeddings of texts, streamed",
		Long: `giantstream turns node texts and edges into embeddings that carry the graph
(GIANT, Chien et al., ICLR 2022), from Kafka topics or files to a sink topic and
Parquet, and keeps them current while the catalog changes.

Start here:
  giantstream quickstart                                        everything embedded, on a sample graph
  giantstream run --nodes n.jsonl.gz --edges e.jsonl.gz --store ./store --until-idle     your own files
  giantstream config example > pipeline.yaml                    the service`,
		Version: buildinfo.Read().String(),
	}
	a.dress(root)
	root.AddGroup(
		&cobra.Group{ID: "main", Title: "Run:"},
		&cobra.Group{ID: "stage", Title: "One stage by hand:"},
		&cobra.Group{ID: "look", Title: "Look and repair:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("main", a.quickstart(), a.preview(), a.run(), a.backfill(), a.importCommand(), a.plan(), a.test(), a.sink())
	add("stage", append(a.oldNames(), a.build(), a.rebuild(), a.evaluate())...)
	add("look", a.similar(), a.status(), a.generations(), a.verify(), a.inspect(), a.report(), a.dlq(), a.override(),
		a.reshard(), a.export(), a.config())
	root.AddCommand(helpExitCodes(), a.version())
	groups(root)
	usageArgs(root)
	completions(root)
	return root
}

// dress gives a program what all of ours have: flags, errors and the version.
func (a *app) dress(root *cobra.Command) {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetVersionTemplate("{{.Version}}\n")
	root.PersistentFlags().StringVar(&a.logLevel, "log-level", "",
		"debug, info, warn or error (default: warn on a terminal, info elsewhere)")
	root.PersistentFlags().StringVar(&a.logFormat, "log-format", "auto", "auto, text or json")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed(oldClassFlag) {
			fmt.Fprintln(a.err, "giantstream: --label is called --class now")
		}
		_, err := a.logger("", "")
		return err
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w\n\nSee '%s --help'", unknownFlag(c, err), c.CommandPath())}
	})
}

// groups makes commands that only have subcommands show their help, and refuse unknown names.
func groups(c *cobra.Command) {
	if c.HasSubCommands() && c.RunE == nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(c, args[0])
			}
			return nil
		}
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	for _, sub := range c.Commands() {
		groups(sub)
	}
}

// usageArgs makes wrong positional arguments usage errors in all commands.
func usageArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usageError{fmt.Errorf("%w\n\nSee '%s --help'", err, c.CommandPath())}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		usageArgs(sub)
	}
}

// logger returns the logger of a command. --log-level takes precedence over level, the command's
// default.
func (a *app) logger(level, format string) (*slog.Logger, error) {
	if a.logLevel != "" {
		level = a.logLevel
	}
	if a.logFormat != "auto" {
		format = a.logFormat
	}
	var l slog.Level
	switch {
	case level == "" && console.Terminal(a.err):
		l = slog.LevelWarn
	case level == "":
		l = slog.LevelInfo
	default:
		if err := l.UnmarshalText([]byte(level)); err != nil {
			return nil, usageError{fmt.Errorf("--log-level %q: use debug, info, warn or error", level)}
		}
	}
	a.level = new(slog.LevelVar)
	a.level.Set(l)
	opts := &slog.HandlerOptions{Level: a.level}
	switch strings.ToLower(format) {
	case "json":
		return slog.New(slog.NewJSONHandler(a.err, opts)), nil
	case "", "auto", "text":
		return slog.New(slog.NewTextHandler(a.err, opts)), nil
	}
	return nil, usageError{fmt.Errorf("--log-format %q: use auto, text or json", format)}
}

// changeableLevel is the level of the newest logger, nil where --log-level fixes it.
func (a *app) changeableLevel() *slog.LevelVar {
	if a.logLevel != "" {
		return nil
	}
	return a.level
}

func helpExitCodes() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean",
		Long: `Exit codes:
  0    done
  1    failed: the message says at what; running the same command again resumes
  2    wrong command line or configuration: nothing was started
  3    finished, but records were lost: the topics had deleted them; accept it with
       'giantstream run --accept-loss TOPIC'
  130  interrupted by a signal; the next run continues where this one stopped`,
	}
}

// Commands returns all commands, for manual pages and completions.
func Commands() *cobra.Command {
	return (&app{out: io.Discard, err: io.Discard}).root()
}
