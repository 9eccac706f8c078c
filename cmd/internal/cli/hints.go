package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"giantstream/cmd/internal/profiles"
	"giantstream/internal/suggest"
	"giantstream/train/generation/fit"
)

// unknownCommand is the error for a command that does not exist, with the one that may have been meant.
func unknownCommand(c *cobra.Command, name string) error {
	var names []string
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	return fmt.Errorf("unknown command %q for %q%s", name, c.CommandPath(),
		didYouMean(suggest.Nearest(name, names), ""))
}

// unknownFlag adds the flag that may have been meant to an error about one that does not exist.
func unknownFlag(c *cobra.Command, err error) error {
	name, ok := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !ok {
		return err
	}
	if c.HasSubCommands() && !c.HasParent() && len(c.Flags().Args()) > 0 {
		return unknownCommand(c, c.Flags().Args()[0])
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return fmt.Errorf("%w%s", err, didYouMean(suggest.Nearest(name, names), "--"))
}

func didYouMean(name, prefix string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s%s?", prefix, name)
}

// kindNames are the names of some kinds of encoders.
func kindNames(of func(fit.Kind) bool) []string {
	return strings.Split(strings.ReplaceAll(fit.KindList(of), " or ", ", "), ", ")
}

// completions tells shells the values of flags that have a few.
func completions(root *cobra.Command) {
	values := map[string][]string{
		"log-level":  {"debug", "info", "warn", "error"},
		"log-format": {"auto", "text", "json"},
		"roles":      {"stream", "refresh", "embed", "build", "serve"},
		"encoder":    kindNames(fit.Kind.Trained),
		"encoders":   kindNames(func(fit.Kind) bool { return true }),
		"code":       letterCodes(),
		"profile":    profiles.Names(),
	}
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		for name, list := range values {
			if c.LocalFlags().Lookup(name) != nil {
				// It can fail only for a flag that does not exist, or twice for one.
				_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
			}
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(root)
}
