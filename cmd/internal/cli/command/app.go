package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/console"
	"giantstream/train/encoders/bert/compute/devices"
)

// App carries what every command shares.
type App struct {
	Out, Err io.Writer
	Drivers  devices.Drivers

	logLevel  string
	logFormat string
	// level is that of the newest logger.
	level *slog.LevelVar
}

// Execute executes one command line of a program.
func (a *App) Execute(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	cmd, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return ExitOK
	case ctx.Err() != nil:
		what := "the next run goes on where this one stopped"
		if beginsAnew(cmd) {
			what = "the next run begins anew"
		}
		fmt.Fprintf(a.Err, "%s: interrupted; %s\n", root.Name(), what)
		return ExitInterrupted
	}
	fmt.Fprintf(a.Err, "%s: %s\n", root.Name(), console.PlainLines(err.Error()))
	if errors.As(err, new(usageError)) {
		return ExitUsage
	}
	if errors.As(err, new(LossError)) {
		return ExitLost
	}
	return ExitFailed
}

// anew marks commands that begin anew.
const anew = "anew"

// BeginsAnew says of a command, and of those below it, that the next run does not go on where one was interrupted.
func BeginsAnew(c *cobra.Command) { c.Annotations = map[string]string{anew: ""} }

func beginsAnew(c *cobra.Command) bool {
	for ; c != nil; c = c.Parent() {
		if _, is := c.Annotations[anew]; is {
			return true
		}
	}
	return false
}

// Dress gives a program what all of ours have: flags, errors and the version.
func (a *App) Dress(root *cobra.Command) {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetVersionTemplate("{{.Version}}\n")
	root.PersistentFlags().StringVar(&a.logLevel, "log-level", "",
		"debug, info, warn or error (default: warn on a terminal, info elsewhere)")
	root.PersistentFlags().StringVar(&a.logFormat, "log-format", "auto", "auto, text or json")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed(oldClassFlag) {
			fmt.Fprintln(a.Err, "giantstream: --label is called --class now")
		}
		_, err := a.Logger("", "")
		return err
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return UsageError(fmt.Errorf("%w\n\nSee '%s --help'", unknownFlag(c, err), c.CommandPath()))
	})
}

// Logger returns the logger of a command. --log-level takes precedence over level, the command's
// default.
func (a *App) Logger(level, format string) (*slog.Logger, error) {
	if a.logLevel != "" {
		level = a.logLevel
	}
	if a.logFormat != "auto" {
		format = a.logFormat
	}
	var l slog.Level
	switch {
	case level == "" && console.Terminal(a.Err):
		l = slog.LevelWarn
	case level == "":
		l = slog.LevelInfo
	default:
		if err := l.UnmarshalText([]byte(level)); err != nil {
			return nil, UsageError(fmt.Errorf("--log-level %q: use debug, info, warn or error", level))
		}
	}
	a.level = new(slog.LevelVar)
	a.level.Set(l)
	opts := &slog.HandlerOptions{Level: a.level}
	switch strings.ToLower(format) {
	case "json":
		return slog.New(slog.NewJSONHandler(a.Err, opts)), nil
	case "", "auto", "text":
		return slog.New(slog.NewTextHandler(a.Err, opts)), nil
	}
	return nil, UsageError(fmt.Errorf("--log-format %q: use auto, text or json", format))
}

// ChangeableLevel is the level of the newest logger, nil where --log-level fixes it.
func (a *App) ChangeableLevel() *slog.LevelVar {
	if a.logLevel != "" {
		return nil
	}
	return a.level
}
