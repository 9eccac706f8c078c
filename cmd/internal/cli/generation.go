package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/status"
	"giantstream/config"
	"giantstream/featurize/pairs"
	"giantstream/sink"
	"giantstream/train/generation"
	"giantstream/train/generation/eval"
	"giantstream/train/generation/fit"
)

func printGraph(p *command.Printer, d *generation.Doc) {
	g := d.Graph
	if d.Because != "" {
		p.Line("because       %s", d.Because)
	}
	switch {
	case d.AveragedWith > 0:
		p.Line("learned       from scratch, averaged with generation %d", d.AveragedWith)
	case d.KeepSpaceOf > 0:
		p.Line("learned       from scratch, turned to generation %d, of which it has learned nothing", d.KeepSpaceOf)
	}
	p.Line("graph         %s, %s (%s hidden for the evaluation)%s",
		command.Plural(g.Nodes, "node"), command.Plural(g.Links, "link"), console.Count(g.Hidden), classes(g.Classes))
	var notes []string
	note := func(n int, what ...string) {
		if n > 0 {
			notes = append(notes, command.Plural(n, what...))
		}
	}
	note(g.Isolated, "node without a neighbour", "nodes without a neighbour")
	note(g.NoText-g.FromNeighbours, "node without text or embedding", "nodes without text or embedding")
	note(g.FromNeighbours, "without text has the mean of its neighbours",
		"without text have the mean of their neighbours")
	note(g.Hubs, "hub over max_degree, label only", "hubs over max_degree, labels only")
	note(g.Dangling, "link to an unknown node left out", "links to unknown nodes left out")
	note(g.Weightless, "link that weighs nothing left out", "links that weigh nothing left out")
	note(g.Deleted, "deleted", "deleted")
	if len(notes) > 0 {
		p.Line("              %s", strings.Join(notes, "; "))
	}
	printOrders(p, d)
	for k, v := range d.Graph.Vectors {
		title := ""
		if k == 0 {
			title = "vectors"
		}
		p.Line("%-13s %s, of %s, weighs %.2g beside the text: %s", title, v.Name, command.Plural(v.Items, "node"),
			v.Weight, v.Why())
	}
	if d.TextOnly != "" {
		p.Line("              made of the texts alone: %s", d.TextOnly)
	}
}

func printOrders(p *command.Printer, d *generation.Doc) {
	o := d.Graph.Orders
	if o == nil {
		return
	}
	by := ""
	if o.MinSupport > 1 {
		by = fmt.Sprintf(", by %d orders or more", o.MinSupport)
	}
	p.Line("orders        %s of %s; %s of %s of nodes linked%s", command.Plural(o.Orders, "order"),
		command.Plural(o.Lines, "line"), console.Count(o.Kept), command.Plural(o.Pairs, "pair"), by)
	var with []string
	for _, l := range o.Partners {
		with = append(with, fmt.Sprintf("%s have %d", console.Count(l.Items), l.Partners))
	}
	p.Line("              %s of %s ordered; of these, %s partners or more", console.Count(o.Items),
		command.Plural(d.Graph.Nodes, "node"), strings.Join(with, ", "))
	if g := d.GoesWith; g != nil {
		p.Line("              %s of what goes with what, for %s", command.Plural(int(g.Rows), "row"),
			command.Plural(g.Items, "node"))
	}
	if o.Unknown > 0 || o.Large > 0 {
		p.Line("              %s no node; %s over %s items, whose pairs do not count",
			command.Plural(o.Unknown, "line has", "lines have"), command.Plural(o.Large, "order has", "orders have"),
			console.Count(pairs.DefaultMaxItems))
	}
	if b := o.Behaviour; b != nil {
		printBehaviour(p, *b)
	}
}

// printBehaviour says what orders add to the text, and why.
func printBehaviour(p *command.Printer, b generation.BehaviourStats) {
	switch {
	case b.TooLarge:
		p.Line("              they are no view of the items: they take too much of featurize.memory_limit")
		return
	case b.Weight > 0:
		p.Line("              they weigh %.2g beside the text, for %s", b.Weight, command.Plural(b.Items, "item"))
	case b.Text.Edges == 0:
		p.Line("              they weigh nothing beside the text: a fifth of the links is only %s, too few to tell",
			command.Plural(b.Asked, "pair"))
		return
	default:
		p.Line("              they weigh nothing beside the text, which predicts links as well alone")
	}
	of := "that a fifth of the orders links anew"
	if b.Drawn {
		of = "that were hidden"
	}
	p.Line("              of %s %s: AUC %.3f, MRR %.3f; by the text alone %.3f, %.3f", command.Plural(b.Asked, "pair"),
		of, b.With.AUC, b.With.MRR, b.Text.AUC, b.Text.MRR)
}

func classes(n int) string {
	if n == 0 {
		return ""
	}
	return ", " + command.Plural(n, "class", "classes")
}

func printTree(p *command.Printer, d *generation.Doc) {
	var levels []string
	for _, n := range d.Tree.Levels {
		levels = append(levels, console.Count(n))
	}
	if v := d.Vectorizer; v.Features > 0 { // generations of older builds do not say
		p.Line("vocabulary    %s n-grams; %.1f %% of those in the texts are not in it", console.Count(v.Features),
			100*v.UnknownShare)
	}
	p.Line("label tree    %s clusters; mean cosine to the leaf's centre %.3f", strings.Join(levels, " → "),
		d.Tree.MeanCosine)
	if e := d.Encoder; e.Kind != "" { // trained by now
		p.Line("encoder       %s, %d dimensions, %s", e.Kind, e.Dim, console.Bytes(e.Bytes))
	}
}

// printEvaluation prints a row per encoder: what the graph is worth.
func printEvaluation(p *command.Printer, d *generation.Doc) {
	evaluations := d.Evaluation
	w := tabwriter.NewWriter(p, 0, 0, 3, ' ', 0)
	head := []string{"  encoder", "link AUC", "MRR", "hits@10"}
	for _, e := range evaluations[:min(1, len(evaluations))] {
		for _, pr := range e.Probes {
			head = append(head, fmt.Sprintf("class, %g %% labelled", 100*pr.Rate))
		}
	}
	fmt.Fprintln(w, strings.Join(head, "\t"))
	for _, e := range evaluations {
		name := fit.Title(e.Encoder)
		row := []string{"  " + name, "-", "-", "-"}
		switch l := e.Links; {
		case l == nil:
		case l.Edges < eval.MinCases: // of three edges, all may be found by chance
			row = []string{"  " + name, command.TooFew, command.TooFew, command.TooFew}
		default:
			row = []string{"  " + name, fmt.Sprintf("%.3f ± %.3f", l.AUC, l.AUCStdErr), fmt.Sprintf("%.3f", l.MRR),
				fmt.Sprintf("%.3f", l.Hits10)}
		}
		for _, pr := range e.Probes {
			row = append(row, fmt.Sprintf("%.3f ± %.3f", pr.Accuracy, pr.StandardError()))
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	p.Keep(w.Flush())
	printColdStart(p, d)
}

// printColdStart prints the figures that new nodes can expect: by degree, and without any edge.
func printColdStart(p *command.Printer, d *generation.Doc) {
	table := coldStart(d.Evaluation)
	if table == nil {
		return
	}
	p.Line("")
	w := tabwriter.NewWriter(p, 0, 0, 3, ' ', 0)
	for _, row := range table {
		fmt.Fprintln(w, "  "+strings.Join(row, "\t"))
	}
	p.Keep(w.Flush())
}

// coldStart is the table of the figures by degree and of isolated nodes, its head first; nil where
// nothing was measured by degree.
func coldStart(evaluations []fit.Evaluation) [][]string {
	if len(evaluations) == 0 || len(evaluations[0].ByDegree) == 0 {
		return nil
	}
	head := []string{"nodes by degree", "encoder", "link AUC", "MRR"}
	rates := evaluations[0].Probes
	for _, r := range rates {
		head = append(head, fmt.Sprintf("class, %g %% labelled", 100*r.Rate))
	}
	table := [][]string{append(head, "class, from the others")}
	for k, bucket := range evaluations[0].ByDegree {
		if bucket.Edges == 0 && bucket.Labelled == 0 {
			continue
		}
		for _, e := range evaluations {
			b := e.ByDegree[k]
			row := []string{bucket.Degree, fit.Title(e.Encoder), command.TooFew, command.TooFew}
			if l := b.Links; l != nil {
				row[2] = fmt.Sprintf("%.3f ± %.3f", l.AUC, l.AUCStdErr)
				row[3] = fmt.Sprintf("%.3f ± %.3f", l.MRR, l.MRRStdErr)
			}
			for i := range rates {
				if i < len(b.Classes) {
					row = append(row, accuracy(&b.Classes[i].ClassMetrics))
				} else {
					row = append(row, command.TooFew)
				}
			}
			last := ""
			if k == 0 {
				last = accuracy(e.Isolated)
			}
			table = append(table, append(row, last))
		}
	}
	return table
}

func accuracy(m *eval.ClassMetrics) string {
	if m == nil {
		return command.TooFew
	}
	return fmt.Sprintf("%.3f ± %.3f", m.Accuracy, m.StdErr)
}

// printGate says loudly that a generation is worse than text alone.
func printGate(p *command.Printer, d *generation.Doc) {
	if words := status.GateWarning(d); words != "" {
		p.Line("")
		p.Line("WARNING: %s", words)
	}
}

func printPlaces(p *command.Printer, cfg *config.Config, d *generation.Doc) {
	prefix := strings.TrimPrefix(cfg.Store, "file://") + "/"
	g := prefix + generation.Prefix(d.Generation)
	p.Line("embeddings    %sembeddings/*.parquet  (%s)", g, size(d.Embeddings))
	p.Line("training set  %sdataset/*.parquet  (%s)", g, size(d.Dataset))
	p.Line("batches       %sshards/*/rows/*.parquet, committed by shards/*/manifests/*.json", prefix)
	p.Line("figures       %sgeneration.json", g)
	p.Line("sink topic    %s", cfg.Kafka.Topics.Embeddings)
}

// size sums up what Parquet parts hold.
func size(parts []sink.Part) string {
	var rows, bytes int64
	for _, p := range parts {
		rows += p.Rows
		bytes += p.Bytes
	}
	return fmt.Sprintf("%s rows, %s", console.Count(rows), console.Bytes(bytes))
}
