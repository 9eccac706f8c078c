package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/profiles"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/train/generation"
)

func configCommand(a *command.App) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check, show or compare configurations; print an example or a schema",
		Example: "  giantstream config example > pipeline.yaml\n  giantstream config check pipeline.yaml"}
	cmd.AddCommand(&cobra.Command{
		Use:     "example",
		Short:   "Print a configuration file with every field explained",
		Example: "  giantstream config example > pipeline.yaml",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.Out.Write(config.Example())
			return err
		},
	}, &cobra.Command{
		Use:   "schema",
		Short: "Print a JSON Schema of configuration files, for editors",
		Long: `Print a JSON Schema of configuration files. Editors with a YAML language server
complete and check fields by it. Name it in the first line of the file:

  # yaml-language-server: $schema=giantstream.schema.json`,
		Example: "  giantstream config schema > giantstream.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			data, err := config.Schema()
			if err == nil {
				_, err = fmt.Fprintf(a.Out, "%s\n", data)
			}
			return err
		},
	}, configCheck(a), configShow(a), configDiff(a), configFromStore(a), configProfiles(a))
	return cmd
}

// configReport is what config check prints as JSON.
type configReport struct {
	File  string `json:"file"`
	Valid bool   `json:"valid"`
	// Pipeline, Shards and Store are those of a valid file.
	Pipeline string        `json:"pipeline,omitempty"`
	Shards   int           `json:"shards,omitempty"`
	Store    string        `json:"store,omitempty"`
	Warnings []string      `json:"warnings,omitempty"`
	Faults   []configFault `json:"faults,omitempty"`
}

// configFault is a fault of a file. Line and Column count from 1, and are left out for a field that is not in it.
type configFault struct {
	Field   string `json:"field,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

func configCheck(a *command.App) *cobra.Command {
	var (
		set    []string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Report every fault of a configuration file at once",
		Example: "  giantstream config check pipeline.yaml\n" +
			"  giantstream config check pipeline.yaml --json | jq .faults",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := readConfig(args[0], set)
			if asJSON {
				return errors.Join(command.WriteJSON(a.Out, reportOn(args[0], cfg, err)), err)
			}
			if err != nil {
				return err
			}
			for _, w := range append(cfg.Renamed(), cfg.Warnings()...) {
				fmt.Fprintf(a.Err, "warning: %s\n", w)
			}
			fmt.Fprintf(a.Out, "%s is valid: pipeline %q, %s, store %s\n",
				args[0], cfg.Pipeline, command.Plural(cfg.Shards, "shard"), cfg.Store)
			return nil
		},
	}
	command.RegisterSet(cmd, &set)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, also of a file with faults")
	return cmd
}

// reportOn says what reading a file has found: a configuration, or an error.
func reportOn(file string, cfg *config.Config, err error) configReport {
	out := configReport{File: file, Valid: err == nil}
	if err == nil {
		out.Pipeline, out.Shards, out.Store = cfg.Pipeline, cfg.Shards, cfg.Store
		out.Warnings = append(cfg.Renamed(), cfg.Warnings()...)
		return out
	}
	faults, ok := errors.AsType[*config.Error](err)
	if !ok {
		out.Faults = []configFault{{Message: err.Error()}}
		return out
	}
	for _, f := range faults.Faults {
		out.Faults = append(out.Faults, configFault{f.Path, f.Line, f.Column, f.Message})
	}
	return out
}

// readConfig reads a file that a command takes as an argument.
func readConfig(path string, set []string) (*config.Config, error) {
	cfg, err := wiring.Load(path, set...)
	if err == nil {
		if err = wiring.Check(&cfg); err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
	}
	if err != nil {
		return nil, command.UsageError(err)
	}
	return &cfg, nil
}

func configShow(a *command.App) *cobra.Command {
	var (
		flags   = command.PipelineFlags{WithSinks: true}
		changed bool
		asJSON  bool
	)
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print every setting as it takes effect",
		Long: `Print every setting as it takes effect: the file's, or the default, with the
variables of the environment, and --store and --set over it. Without a file, a
store keeps the settings of its pipeline. Secrets are shown as ***.`,
		Example: "  giantstream config show -c pipeline.yaml --changed\n" +
			"  giantstream config show -c pipeline.yaml --set window.time=2s --json",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := flags.Load()
			if err == nil {
				err = command.CheckConfig(cfg)
			}
			if err != nil {
				return err
			}
			fields, defaults := cfg.Fields(), config.Default()
			if changed {
				usual := defaults.Fields()
				fields = slices.DeleteFunc(fields, func(f config.Field) bool { return slices.Contains(usual, f) })
			}
			if asJSON {
				return command.WriteJSON(a.Out, fields)
			}
			w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
			for _, f := range fields {
				fmt.Fprintf(w, "%s\t%s\n", f.Path, cmp.Or(f.Value, `""`))
			}
			return w.Flush()
		},
	}
	flags.Register(cmd)
	flags.RegisterProfile(cmd)
	cmd.Flags().BoolVar(&changed, "changed", false, "only what differs from the defaults")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func configProfiles(a *command.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "profiles [NAME]",
		Short: "List the exports whose columns are known, or print the settings of one",
		Long: `List the profiles: exports of catalogs whose columns are known. --profile NAME of run,
backfill and preview takes the settings of one, below those of a configuration file
and of flags. With a name, print them as a part of a configuration file.`,
		Example: "  giantstream config profiles\n  giantstream config profiles shopify >> pipeline.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				if asJSON {
					return command.WriteJSON(a.Out, profiles.List())
				}
				w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
				for _, p := range profiles.List() {
					fmt.Fprintf(w, "%s\t%s\n", p.Name, p.About)
				}
				return w.Flush()
			}
			p, err := profiles.Find(args[0])
			if err != nil {
				return command.UsageError(err)
			}
			if asJSON {
				return command.WriteJSON(a.Out, p)
			}
			_, err = fmt.Fprintf(a.Out, "%s%s", readFlags(p), p.YAML())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// readFlags says in a comment with which flags files of a profile are read, which a configuration file has no fields
// for; "" for none.
func readFlags(p *profiles.Profile) string {
	var flags string
	if p.Read.ListSeparator != "" {
		flags += fmt.Sprintf(" --list-separator '%s'", p.Read.ListSeparator)
	}
	if p.Read.SkipWithoutText {
		flags += " --skip-without-text"
	}
	if flags == "" {
		return ""
	}
	return "# Without --profile " + p.Name + ", files need" + flags + ".\n"
}

func configDiff(a *command.App) *cobra.Command {
	var (
		set    []string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "diff FILE [FILE]",
		Short: "Compare two configurations, or one with what its store was made with",
		Long: `Compare two configurations, as they take effect. With one file, compare it with its
store: with the mapping by which records were read, and with the settings of the
newest generation. --set changes the last file.

A mapping that differs is refused when the pipeline starts ('giantstream remap').
Settings of the generation that differ take effect with the next one ('giantstream
rebuild'). Secrets are compared and not shown.`,
		Example: "  giantstream config diff old.yaml new.yaml\n" +
			"  giantstream config diff pipeline.yaml --set train.encoder=linear",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			last, err := readConfig(args[len(args)-1], set)
			if err != nil {
				return err
			}
			heads, differences := []string{"FIELD", args[0], args[len(args)-1]}, []command.Setting{}
			if len(args) == 1 {
				heads[1] = "STORE"
				differences, err = diffStore(a, cmd, last)
			} else {
				var first *config.Config
				if first, err = readConfig(args[0], nil); err == nil {
					differences = diffConfigs(first, last)
				}
			}
			if err != nil {
				return err
			}
			if asJSON {
				return command.WriteJSON(a.Out, differences)
			}
			if len(differences) == 0 {
				fmt.Fprintln(a.Out, "no difference")
				return nil
			}
			w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
			fmt.Fprintf(w, "%s\t%s\t%s\n", heads[0], heads[1], heads[2])
			for _, d := range differences {
				fmt.Fprintf(w, "%s\t%s\t%s\n", d.Field, cmp.Or(d.A, `""`), cmp.Or(d.B, `""`))
			}
			return w.Flush()
		},
	}
	command.RegisterSet(cmd, &set)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// diffConfigs compares two configurations. Secrets that differ are shown as such.
func diffConfigs(first, second *config.Config) []command.Setting {
	out := []command.Setting{}
	for _, c := range config.Diff(first, second) {
		out = append(out, command.Setting{Field: c.Path, A: c.From, B: c.To})
	}
	return out
}

// diffStore compares a configuration with what its store was made with.
func diffStore(a *command.App, cmd *cobra.Command, cfg *config.Config) ([]command.Setting, error) {
	p, err := a.OpenStore(cmd.Context(), cfg)
	if err != nil {
		return nil, err
	}
	have, want := map[string]string{}, map[string]string{}
	if p.Identity.Settings != nil { // a store of an older version does not say
		maps.Copy(have, p.Identity.Settings)
		maps.Copy(want, wiring.GraphSettings(cfg))
	}
	latest, err := generation.Newest(cmd.Context(), p.Store)
	if err != nil && !errors.Is(err, generation.ErrNone) {
		return nil, err
	}
	if doc := latest.Last(); doc != nil {
		settings := wiring.SettingsOf(cfg)
		if doc.Settings.FromOrders == nil { // a store without orders takes no settings of them
			settings.FromOrders = nil
		}
		maps.Copy(have, wiring.EncodingSettings(doc.Settings))
		maps.Copy(want, wiring.EncodingSettings(settings))
	}
	return command.DifferentSettings(have, want), nil
}
