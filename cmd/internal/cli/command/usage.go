package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"giantstream/internal/suggest"
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
	near := suggest.Nearest(name, names)
	if _, rest, found := strings.Cut(name, "-"); found && near == "" {
		near = suggest.Nearest(rest, names) // those of nodes have no prefix: --id is the flag for --node-id
	}
	return fmt.Errorf("%w%s", err, didYouMean(near, "--"))
}

func didYouMean(name, prefix string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s%s?", prefix, name)
}

// HelpOnGroups makes commands that only have subcommands show their help, and refuse unknown names.
func HelpOnGroups(c *cobra.Command) {
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
		HelpOnGroups(sub)
	}
}

// CheckArgs makes wrong positional arguments usage errors in all commands.
func CheckArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return UsageError(fmt.Errorf("%w\n\nSee '%s --help'", err, c.CommandPath()))
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		CheckArgs(sub)
	}
}
