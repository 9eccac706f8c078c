package command

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestFlagsOfOneValueTakeOne(t *testing.T) {
	for _, tt := range []struct {
		args []string
		says string // of the error, "" for none
	}{
		{[]string{"sub", "--id", "sku", "--text", "a", "--text", "b", "--quiet", "--quiet"}, ""},
		{[]string{"sub", "--id", "sku", "--id=sku"}, ""},
		{[]string{"sub", "--id", "sku", "--id=gtin"}, `"sku" was given before`},
		{[]string{"--store", "a", "sub", "--store", "b"}, `"a" was given before`},
		{[]string{"sub", "--keep", "1h", "--keep", "2h"}, `"1h" was given before`},
	} {
		root, sub := &cobra.Command{Use: "root"}, &cobra.Command{Use: "sub", RunE: func(*cobra.Command, []string) error {
			return nil
		}}
		root.AddCommand(sub)
		root.PersistentFlags().String("store", "", "")
		sub.Flags().String("id", "id", "")
		sub.Flags().StringArray("text", nil, "")
		sub.Flags().Duration("keep", 0, "")
		sub.Flags().Bool("quiet", false, "")
		TakeFlagsOnce(root)
		root.SilenceErrors, root.SilenceUsage = true, true
		root.SetArgs(tt.args)
		err := root.Execute()
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%q: %v, want %q", tt.args, err, tt.says)
		}
		if id, err := sub.Flags().GetString("id"); err != nil || id != "sku" && id != "id" {
			t.Errorf("%q: the flag reads %q (%v)", tt.args, id, err)
		}
	}
}
