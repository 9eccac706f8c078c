package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/operate"
	"giantstream/cmd/internal/profiles"
	"giantstream/train/generation/fit"
)

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
		"code":       operate.LetterCodes(),
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
