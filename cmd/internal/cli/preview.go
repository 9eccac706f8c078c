package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/client"
	"giantstream/ingest/preview"
)

func previewCommand(a *command.App) *cobra.Command {
	var (
		flags   command.PipelineFlags
		inputs  command.InputFlags
		records int64
		rows    int
		asJSON  bool
	)
	cmd := &cobra.Command{
		Use:   "preview",
		Short: "Show what files or topics become, before anything is sent or consumed",
		Long: `Read the first records of files, or of the topics of a configuration, and show
them as they would be mapped: how many have each field, which ids of edges are ids
of nodes, how long the texts are and in which languages, and what would be a dead
letter. A field of the mapping that no record has is an error (exit code 2).

Nothing is written, sent or committed. Give the same flags as to 'run'.`,
		Example: `  giantstream preview --nodes p.csv --edges p.csv --id sku --text title --src sku --dst also
  giantstream preview --orders o.csv --order-id order --order-item sku --order-time placed
  giantstream preview --profile shopify --nodes products_export.csv
  giantstream preview -c pipeline.yaml
  giantstream preview -c pipeline.yaml --nodes 's3://bucket/nodes/*.parquet' --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if err := inputs.UseProfile(flags.Profile); err != nil {
				return err
			}
			configuration := flags.Local
			if flags.File != "" || flags.Store != "" {
				configuration = flags.Load
			}
			cfg, err := configuration()
			if err != nil {
				return err
			}
			inputs.Apply(cfg)
			if err := command.CheckConfig(cfg); err != nil {
				return err
			}
			if records < 1 || records > 1_000_000 {
				return command.UsageError(errors.New("--records: give a number from 1 to 1,000,000"))
			}
			p, err := readPreview(ctx, a, cfg, &inputs, records, rows)
			if err != nil {
				return err
			}
			if asJSON {
				err = command.WriteJSON(a.Out, p)
			} else {
				err = printPreview(&command.Printer{Out: a.Out}, p, cfg.Ingest.External.Model)
			}
			if err == nil {
				if err = p.Err(command.FieldFlags); err != nil {
					err = command.UsageError(err)
				}
			}
			return err
		},
	}
	flags.Register(cmd)
	flags.RegisterProfile(cmd)
	inputs.Register(cmd)
	inputs.RegisterOrders(cmd)
	_ = cmd.Flags().MarkHidden("allow-unmatched") // a preview always goes on
	cmd.Flags().Int64Var(&records, "records", command.CheckRecords,
		"how many records to read of each input")
	cmd.Flags().IntVar(&rows, "rows", 5, "how many mapped records to show of each")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// readPreview reads the files that the flags name, or else the topics.
func readPreview(ctx context.Context, a *command.App, cfg *config.Config, inputs *command.InputFlags, records int64,
	rows int) (*preview.Preview, error) {
	if inputs.Given() {
		files, err := inputs.Open(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return command.PreviewFiles(ctx, inputs.PreviewOptions(cfg, records, rows), files)
	}
	if cfg.Kafka.Embedded() {
		return nil, command.UsageError(
			errors.New("give files with --nodes and --edges, or a configuration with kafka.brokers"))
	}
	opts, err := wiring.ClientOptions(cfg)
	if err != nil {
		return nil, err
	}
	from, err := client.New(opts)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	return wiring.PreviewTopics(ctx, cfg, from, wiring.PreviewOf(cfg, records, rows))
}

// printPreview prints what was read. model is the external one, "" for none.
func printPreview(p *command.Printer, v *preview.Preview, model string) error {
	printSide(p, "Nodes", &v.Nodes)
	if t := v.Texts; t.Nodes > 0 {
		p.Line("")
		p.Line("texts         %s empty; median %s, 90 %% up to %s, longest %s characters", console.Count(t.Empty),
			console.Count(t.Median), console.Count(t.P90), console.Count(t.Max))
		if len(t.Scripts) > 0 {
			p.Line("scripts       %s of the letters", shares(t.Scripts))
		}
		if len(t.Languages) > 0 {
			p.Line("languages     %s of the texts with frequent words (a guess)", shares(t.Languages))
		}
		if model != "" {
			p.Line("vectors       %s would be asked for %s", console.Plain(model),
				command.Plural(t.Nodes-t.Empty, "text"))
		}
	}
	printSide(p, "Edges", &v.Edges)
	for i := range v.Attributes {
		printSide(p, "Attributes of topic "+console.Plain(v.Attributes[i].Topic), &v.Attributes[i])
	}
	for i := range v.EdgeTopics {
		printSide(p, "Edges of topic "+console.Plain(v.EdgeTopics[i].Topic), &v.EdgeTopics[i])
	}
	if v.Orders != nil {
		printPreviewOfOrders(p, v.Orders)
	}
	printIDs(p, v)
	if warnings := v.Warnings(); len(warnings) > 0 {
		p.Line("")
		for _, w := range warnings {
			p.Line("WARNING: %s", console.Plain(w))
		}
	}
	return p.Err
}

// printIDs shows which ids of the inputs are ids of nodes.
func printIDs(p *command.Printer, v *preview.Preview) {
	type named struct {
		names, namesNot string
		match           *preview.Match
	}
	all := []named{{"edges name", "no edge names", v.Match}}
	for _, s := range v.Attributes {
		topic := console.Plain(s.Topic)
		all = append(all, named{"topic " + topic + " names", "it does not name", s.Match})
	}
	if v.Orders != nil {
		all = append(all, named{"orders name", "no order names", v.Orders.Match})
	}
	if !slices.ContainsFunc(all, func(n named) bool { return n.match != nil }) {
		return
	}
	p.Heading("Ids")
	for _, n := range all {
		m := n.match
		if m == nil {
			continue
		}
		others := "all nodes are among them"
		if m.Unlinked > 0 {
			others = n.namesNot + " " + command.Plural(m.Unlinked, "node")
		}
		p.Line("%s of the %s that %s are ids of nodes; %s", console.Count(m.Known), command.Plural(m.Ends, "id"),
			n.names, others)
		if m.Partial {
			p.Line("Only a part was read: others may be nodes further on (--records).")
		}
		if len(m.Unknown) > 0 {
			p.Line("Unknown, for example: %s", console.Plain(strings.Join(m.Unknown, ", ")))
		}
	}
}

// printPreviewOfOrders shows what orders have in common.
func printPreviewOfOrders(p *command.Printer, o *preview.Orders) {
	printSide(p, "Orders", &o.Side)
	if o.Orders == 0 {
		return
	}
	p.Line("orders        %s with %s; items of an order: mean %.1f, most %s", console.Count(o.Orders),
		command.Plural(o.Lines, "line"), float64(o.Lines)/float64(o.Orders), console.Count(int64(o.MaxItems)))
	for _, k := range o.Kinds {
		p.Line("kind          %s: %s", console.Plain(k.Kind), command.Plural(k.Orders, "order"))
	}
	for _, pair := range o.Pairs {
		p.Line("together      %s and %s: %s", console.Plain(pair.Items[0]), console.Plain(pair.Items[1]),
			command.Plural(pair.Orders, "order"))
	}
}

func shares(of []preview.Share) string {
	parts := make([]string, len(of))
	for i, s := range of {
		parts[i] = fmt.Sprintf("%s %.0f %%", s.Name, 100*s.Share)
	}
	return strings.Join(parts, ", ")
}

func printSide(p *command.Printer, title string, s *preview.Side) {
	if len(s.Sources) == 0 && s.Records == 0 {
		return
	}
	p.Heading("%s", title)
	for _, from := range s.Sources {
		more := ""
		if from.More {
			more = "first "
		}
		notes := ""
		if len(from.Notes) > 0 {
			notes = ": " + strings.Join(from.Notes, ", ")
		}
		p.Line("%s: %s%s%s", console.Plain(from.Name), more, command.Plural(from.Records, "record"),
			console.Plain(notes))
	}
	p.Line("")
	printFields(p, s)
	printRows(p, s)
	for i, of := range s.Vectors {
		if i == 0 {
			p.Line("")
		}
		norms := ""
		if of.Records > 0 {
			norms = fmt.Sprintf("; norms %.4g to %.4g", of.MinNorm, of.MaxNorm)
		}
		p.Line("vector        %s, %d × %s: %s%s", of.Name, of.Length, of.Precision,
			command.Plural(of.Records, "record"), norms)
	}
	if title == "Edges" || s.Links > 0 {
		p.Line("")
		p.Line("links         %s", console.Count(s.Links))
		for _, k := range s.Kinds {
			p.Line("kind          %s: %s", console.Plain(k.Kind), command.Plural(k.Links, "link"))
		}
	}
	for _, f := range s.Faults {
		p.Line("dead letters  %s %s, such as %s: %s", console.Count(f.Records), f.Code, console.Plain(f.Example),
			console.Plain(f.Message))
	}
}

// printFields prints how many records have each field of the mapping.
func printFields(p *command.Printer, s *preview.Side) {
	w := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FIELD\tPATH\tFILLED\tRECORDS\t")
	for _, f := range s.Fields {
		if f.Filled.Filled == 0 && !f.Required && !f.Named && f.DidYouMean == "" {
			continue
		}
		note := ""
		if f.Absent {
			note = "no record has it"
		}
		if f.DidYouMean != "" {
			note += fmt.Sprintf("; did you mean %s?", preview.QuotePath(console.Plain(f.DidYouMean)))
		}
		rate := "-"
		if f.Records > 0 {
			rate = command.Percent(f.Filled.Filled, f.Records)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", f.Field, console.Plain(f.Path), rate,
			console.Count(f.Filled.Filled), note)
	}
	p.Keep(w.Flush())
}

// printRows prints what some records state.
func printRows(p *command.Printer, s *preview.Side) {
	if len(s.Rows) == 0 {
		return
	}
	p.Line("")
	w := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	for _, row := range s.Rows {
		fmt.Fprintf(w, "%s\t%s\n", command.Shorten(row.ID, 24), rowText(&row))
	}
	p.Keep(w.Flush())
}

// rowText shows what a record states of a node.
func rowText(r *preview.Row) string {
	var parts []string
	if r.Deleted {
		parts = append(parts, "(deleted)")
	}
	if r.Text != "" {
		parts = append(parts, command.Shorten(r.Text, 60))
	}
	if r.Class != "" {
		parts = append(parts, "class "+command.Shorten(r.Class, 20))
	}
	if r.Attributes != nil {
		parts = append(parts, command.Shorten(string(r.Attributes), 80))
	}
	if len(r.Links) > 0 {
		const most = 5
		links := strings.Join(r.Links[:min(len(r.Links), most)], ", ")
		if n := len(r.Links) - most; n > 0 {
			links += fmt.Sprintf(" and %d more", n)
		}
		parts = append(parts, "→ "+command.Shorten(links, 60))
	}
	if r.Kind != "" {
		parts = append(parts, "kind "+command.Shorten(r.Kind, 20))
	}
	if r.Weight != nil {
		parts = append(parts, fmt.Sprintf("weight %v", *r.Weight))
	}
	return strings.Join(parts, "  ")
}
