package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/buildinfo"
)

func (a *app) version() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "  giantstream version --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return writeJSON(a.out, buildinfo.Read())
			}
			_, err := fmt.Fprintln(a.out, buildinfo.Read())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
