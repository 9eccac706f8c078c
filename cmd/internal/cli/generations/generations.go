package generations

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/status"
	"giantstream/cmd/internal/wiring"
	"giantstream/train/generation"
)

// Command is 'giantstream generations' with its subcommands.
func Command(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "generations",
		Short: "List and compare generations, and choose which one is served",
		Long: `List and compare generations, and choose which one is served.

The newest generation that is ready is served, unless it was withdrawn or
another one is pinned. Running processes follow a decision within seconds, and
publish the embeddings of the generation that is served from then on, all of
them.`,
		Example: `  giantstream generations list -c pipeline.yaml
  giantstream generations compare 4 5 -c pipeline.yaml
  giantstream generations rollback -c pipeline.yaml --reason "fewer clicks since Monday"`,
	}
	decide := func(use, short, long, example string, do func(context.Context, generation.Chooser, int64) (
		generation.Decision, error)) *cobra.Command {
		return decision(a, &cobra.Command{Use: use, Short: short, Long: long, Example: example}, do)
	}
	cmd.AddCommand(generationsList(a), generationsCompare(a),
		decide("promote N", "Serve a generation that is a canary, was withdrawn or refused, or waits behind a pin",
			"Serve generation N: the canary (sink.canary_topic), one that was withdrawn, that\n"+
				"refresh.quality_gate has refused, or that waits behind a pin. A pin moves to N.",
			"  giantstream generations promote 5 -c pipeline.yaml",
			func(ctx context.Context, c generation.Chooser, g int64) (generation.Decision, error) {
				return c.Promote(ctx, g)
			}),
		decide("rollback", "Serve the generation before the one that is served",
			"Withdraw the canary (sink.canary_topic), so that the canary topic gets the generation\n"+
				"that is served. Without a canary, withdraw the generation that is served, so that the\n"+
				"one before it is served again.\n"+
				"Generations that are built from now on are served as usual, unless one is pinned.",
			"  giantstream generations rollback -c pipeline.yaml",
			func(ctx context.Context, c generation.Chooser, _ int64) (generation.Decision, error) {
				return c.Rollback(ctx)
			}),
		decide("pin N", "Serve one generation, whatever is built",
			"Serve generation N until 'unpin', 'promote' or another 'pin'. Generations are built as\n"+
				"usual and wait. A pinned generation is never removed.",
			"  giantstream generations pin 4 -c pipeline.yaml",
			func(ctx context.Context, c generation.Chooser, g int64) (generation.Decision, error) {
				return c.Pin(ctx, g)
			}),
		decide("unpin", "Serve the newest generation again",
			"Serve the newest generation again, and each that follows.",
			"  giantstream generations unpin -c pipeline.yaml",
			func(ctx context.Context, c generation.Chooser, _ int64) (generation.Decision, error) {
				return c.Unpin(ctx)
			}))
	return cmd
}

// decision is a command that decides about generations; the one whose use ends in N takes a number.
func decision(a *command.App, cmd *cobra.Command,
	do func(context.Context, generation.Chooser, int64) (generation.Decision, error)) *cobra.Command {
	var (
		flags  command.PipelineFlags
		reason string
		asJSON bool
	)
	numbers := 0
	if cmd.Use != cmd.Name() {
		numbers = 1
	}
	cmd.Args = cobra.ExactArgs(numbers)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		number := int64(0)
		if numbers == 1 {
			var err error
			if number, err = command.ParseGeneration(args[0]); err != nil {
				return err
			}
		}
		pipe, err := a.Open(cmd.Context(), &flags)
		if err != nil {
			return err
		}
		d, err := do(cmd.Context(), generation.Chooser{Store: pipe.Store, Reason: reason, Now: time.Now}, number)
		if err != nil {
			return err
		}
		if asJSON {
			return command.WriteJSON(a.Out, d)
		}
		switch {
		case d.To == d.From && d.Action == "rollback":
			fmt.Fprintf(a.Out, "generation %d is no longer the canary: the canary topic gets generation %d "+
				"('giantstream status' shows how far that is)\n", d.Generation, d.To)
		case d.To == d.From:
			fmt.Fprintf(a.Out, "generation %d is served as before\n", d.To)
		default:
			fmt.Fprintf(a.Out, "generation %d is served instead of %d; running processes publish its embeddings "+
				"('giantstream status' shows how far they are)\n", d.To, d.From)
		}
		return nil
	}
	flags.Register(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for 'generations list --json' and the store")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func generationsList(a *command.App) *cobra.Command {
	var (
		flags  command.PipelineFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use: "list", Short: "List generations with their figures, and which one is served",
		Example: "  giantstream generations list --store ./store", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			pipe, err := a.Open(cmd.Context(), &flags)
			if err != nil {
				return err
			}
			st, err := status.Read(cmd.Context(), pipe.Store, pipe.Identity)
			if err != nil {
				return err
			}
			if asJSON {
				return command.WriteJSON(a.Out, struct {
					Served      int64                 `json:"served,omitempty"`
					Generations []status.Generation   `json:"generations"`
					Decisions   []generation.Decision `json:"decisions,omitempty"`
				}{st.Served, st.Generations, st.Decisions})
			}
			return printGenerations(a, st)
		},
	}
	flags.Register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printGenerations(a *command.App, st *status.Status) error {
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "GENERATION\tSTATUS\tENCODER\tNODES\tLINK AUC\tMRR\tCLASS\tKEPT\tFINISHED")
	for _, g := range st.Generations {
		row := []string{strconv.FormatInt(g.Generation, 10), st.Words(&g), "-", console.Count(g.Nodes), "-", "-", "-",
			orDash(g.NeighboursKept), "-"}
		if g.Encoder != "" {
			row[2] = g.Encoder
		}
		if n := len(g.Figures); n > 0 {
			f := g.Figures[n-1]
			row[4], row[5], row[6] = orDash(f.LinkAUC), orDash(f.MRR), orDash(f.Class)
		}
		if !g.Finished.IsZero() {
			row[8] = g.Finished.UTC().Format(time.DateTime)
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if p := st.Publishing; p.Published < p.Shards {
		fmt.Fprintf(a.Out, "\nembeddings of generation %d are being published: %d of %s done\n", st.Served, p.Published,
			command.Plural(p.Shards, "shard"))
	}
	if n := len(st.Decisions); n > 0 {
		d := st.Decisions[n-1]
		fmt.Fprintf(a.Out, "\nnewest decision: %s, %s UTC%s\n", d.Action, d.At.UTC().Format(time.DateTime),
			because(d.Reason))
	}
	return nil
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + console.PlainLines(reason)
}

// orDash prints a figure that may not have been measured.
func orDash(f *float64) string {
	if f == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", *f)
}

// comparison is what generations compare prints as JSON.
type comparison struct {
	Before    generation.Summary `json:"before"`
	After     generation.Summary `json:"after"`
	SameSpace bool               `json:"same_space"`
	// Settings are those that decide about embeddings and differ.
	Settings []command.Setting `json:"settings"`
	// Overlap is nil for too few nodes that both have.
	Overlap *generation.OverlapStats `json:"overlap,omitempty"`
}

func generationsCompare(a *command.App) *cobra.Command {
	var (
		flags  command.PipelineFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare two generations: figures, settings, and how many nearest neighbours stay",
		Long: `Compare two generations: their figures on held-out data, the settings that differ, and
on a sample of the nodes that both have, how the embeddings that they have stored
differ. Figures of two generations are measured on links hidden from each, of the
graph as it was at the time.`,
		Example: "  giantstream generations compare 4 5 --store ./store",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			pipe, err := a.Open(cmd.Context(), &flags)
			if err != nil {
				return err
			}
			var docs [2]*generation.Doc
			for i, arg := range args {
				g, err := command.ParseGeneration(arg)
				if err != nil {
					return err
				}
				if docs[i], err = command.FindGeneration(cmd.Context(), pipe.Store, g); err != nil {
					return err
				}
				if !docs[i].Complete() {
					return fmt.Errorf("generation %d is %s: only complete ones can be compared", g, docs[i].Status)
				}
			}
			c := comparison{Before: docs[0].Summary(), After: docs[1].Summary(),
				SameSpace: docs[0].SpaceOf() == docs[1].SpaceOf(), Settings: command.DifferentSettings(
					wiring.EncodingSettings(docs[0].Settings), wiring.EncodingSettings(docs[1].Settings))}
			if c.Overlap, err = generation.Compare(cmd.Context(), pipe.Store, docs[0], docs[1]); err != nil {
				return err
			}
			if asJSON {
				return command.WriteJSON(a.Out, c)
			}
			return printCompared(a, &c)
		},
	}
	flags.Register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printCompared(a *command.App, c *comparison) error {
	w := tabwriter.NewWriter(a.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "\tgeneration %d\tgeneration %d\tchange\n", c.Before.Generation, c.After.Generation)
	fmt.Fprintf(w, "encoder\t%s\t%s\t\n", c.Before.Encoder, c.After.Encoder)
	for _, n := range []struct {
		name string
		of   func(*generation.Summary) int
	}{
		{"nodes", func(s *generation.Summary) int { return s.Nodes }},
		{"links", func(s *generation.Summary) int { return s.Links }},
	} {
		from, to := n.of(&c.Before), n.of(&c.After)
		fmt.Fprintf(w, "%s\t%s\t%s\t%+d\n", n.name, console.Count(from), console.Count(to), to-from)
	}
	last := func(s *generation.Summary) (f generation.Figures) {
		if n := len(s.Figures); n > 0 {
			f = s.Figures[n-1]
		}
		return f
	}
	for _, n := range []struct {
		name string
		of   func(generation.Figures) *float64
	}{
		{"link AUC", func(f generation.Figures) *float64 { return f.LinkAUC }},
		{"MRR", func(f generation.Figures) *float64 { return f.MRR }},
		{"class", func(f generation.Figures) *float64 { return f.Class }},
	} {
		from, to, change := n.of(last(&c.Before)), n.of(last(&c.After)), ""
		if from != nil && to != nil {
			change = fmt.Sprintf("%+.3f", *to-*from)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", n.name, orDash(from), orDash(to), change)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range c.Settings {
		fmt.Fprintf(a.Out, "setting %s: %s, then %s\n", s.Field, s.A, s.B)
	}
	switch {
	case c.Overlap == nil:
		fmt.Fprintln(a.Out, "\ntoo few nodes are in both to compare embeddings")
		return nil
	case c.SameSpace:
		fmt.Fprintln(a.Out, "\none space: vectors of the two can be compared")
	default:
		fmt.Fprintln(a.Out, "\ntwo spaces: vectors of the two cannot be compared with each other")
	}
	o := c.Overlap
	fmt.Fprintf(a.Out, "of the ten nearest among %s nodes, %.1f %% stay the same\n", console.Count(o.Nodes), 100*o.Kept)
	if c.SameSpace {
		fmt.Fprintf(a.Out, "new vectors find %.1f %% of their ten nearest in the old index\n"+
			"old vectors find %.1f %% of theirs in the new index\n%.1f %% of the nodes moved (cosine below 0.9)\n",
			100*o.NewOnOld, 100*o.OldOnNew, 100*o.Moved)
	}
	return nil
}
