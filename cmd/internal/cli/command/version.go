package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/buildinfo"
)

// Version is the command that prints the version of the program.
func Version(a *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "  giantstream version --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return WriteJSON(a.Out, buildinfo.Read())
			}
			_, err := fmt.Fprintf(a.Out, "%s\nWhat has changed, and what may change in which release: CHANGELOG.md\n",
				buildinfo.Read())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
