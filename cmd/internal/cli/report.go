package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/service"
	"giantstream/config"
	"giantstream/ingest/backfill"
	"giantstream/ingest/preview"
	"giantstream/train/generation"
	"giantstream/train/generation/eval"
	"giantstream/train/generation/fit"
	"giantstream/train/objectives/xmc"
)

// runReport describes what a run until idle has done.
type runReport struct {
	Store string          `json:"store"`
	Sent  *backfill.Stats `json:"sent,omitempty"`
	// Mapped is what the first records of the files said, nil without files.
	Mapped      *preview.Preview        `json:"mapped,omitempty"`
	DeadLetters service.DeadLetterCount `json:"dead_letters"`
	// Lost is what the topics had deleted before it was read, and nobody has accepted.
	Lost []service.Lost `json:"lost,omitempty"`
	// Shrunk says that files that were sent again do not have all that was lost with the state.
	Shrunk string `json:"shrunk,omitempty"`
	// Generation is nil where the process neither refreshes nor embeds.
	Generation *generation.Doc `json:"generation"`
	// Refused is the generation that the quality gate has refused after that one, nil for none.
	Refused *generation.Doc `json:"refused,omitempty"`
	// Built is false when nothing had changed since that generation.
	Built bool `json:"built"`
	// Because is why a generation was built, "" if none was.
	Because string                 `json:"because,omitempty"`
	Laps    []generation.StageTime `json:"laps"`

	last time.Time
}

func newRunReport(cfg *config.Config) *runReport {
	return &runReport{Store: cfg.Store, last: time.Now()}
}

func (r *runReport) sent(s backfill.Stats) { r.Sent = &s }

// lap ends a part of the run.
func (r *runReport) lap(name string) {
	now := time.Now()
	r.Laps = append(r.Laps, generation.StageTime{Name: name, Seconds: now.Sub(r.last).Seconds()})
	r.last = now
}

func seconds(s float64) string { return console.Duration(time.Duration(s * float64(time.Second))) }

func (r *runReport) print(out io.Writer, cfg *config.Config) error {
	d := r.Generation
	p := &printer{out: out}
	switch {
	case d == nil:
		p.heading("Everything that was sent is committed")
	case r.Refused != nil:
		p.heading("Generation %d was refused; generation %d keeps serving", r.Refused.Generation, d.Generation)
	case r.Built:
		p.heading("Generation %d is ready", d.Generation)
		if d.Parent > 0 {
			p.line("because       %s", r.Because)
		}
	default:
		p.heading("Up to date: nothing has changed since generation %d", d.Generation)
	}
	if s := r.Sent; s != nil {
		p.line("sent          %s and %s%s", plural(s.Nodes, "node record"), plural(s.Edges, "edge record"),
			earlier(s.Resumed))
		for _, line := range inputLines(s) {
			p.line("              %s", line)
		}
	}
	if r.Mapped != nil {
		for _, warning := range r.Mapped.Warnings() {
			p.line("WARNING       %s", console.Plain(warning))
		}
	}
	if s := r.Sent; s != nil {
		if warning := staleWarning(s); warning != "" {
			p.line("              %s", warning)
		}
	}
	if d != nil {
		printGraph(p, d)
	}
	if r.DeadLetters.Total > 0 {
		p.line("dead letters  %s: %s", console.Count(r.DeadLetters.Total), r.DeadLetters)
	}
	for _, l := range r.Lost {
		p.line("LOST          %s", l)
	}
	if r.Shrunk != "" {
		p.line("LOST          %s", r.Shrunk)
	}
	if d == nil {
		return p.err
	}
	printTree(p, d)
	p.line("")
	printEvaluation(p, d)
	printGate(p, d)
	if r.Refused != nil {
		p.line("")
		p.line("Generation %d, refused:", r.Refused.Generation)
		printEvaluation(p, r.Refused)
		printGate(p, r.Refused)
	}
	p.heading("Time")
	for _, l := range r.Laps {
		p.line("%-28s %9s", l.Name, seconds(l.Seconds))
		if l.Name == "generation" && r.Built {
			for _, s := range d.Stages {
				p.line("  %-26s %9s", s.Name, seconds(s.Seconds))
			}
		}
	}
	p.heading("Where things are")
	printPlaces(p, cfg, d)
	if dir, ok := strings.CutPrefix(cfg.Store, "file://"); ok {
		p.heading("What to look at")
		p.line("giantstream similar ID --store %s", dir)
		p.line("giantstream report --store %s -o page.html", dir)
	}
	return p.err
}

// plural returns a count with its noun: the one of one, and else the other one, or the first with an s.
func plural[T ~int | ~int64](n T, nouns ...string) string {
	noun := nouns[0]
	if n != 1 && len(nouns) > 1 {
		noun = nouns[1]
	} else if n != 1 {
		noun += "s"
	}
	return console.Count(n) + " " + noun
}

// inputLines say how files were read, and how full the mapped fields are in all that was sent.
func inputLines(s *backfill.Stats) (lines []string) {
	for _, note := range s.Notes {
		lines = append(lines, console.Plain(note))
	}
	if s.BadRows > 0 {
		lines = append(lines, plural(s.BadRows, "line is no CSV row: a dead letter",
			"lines are no CSV rows: dead letters"))
	}
	if s.Skipped > 0 {
		lines = append(lines, plural(s.Skipped, "node record without text left out",
			"node records without text left out"))
	}
	fields := map[string][]string{}
	for _, f := range s.Fields {
		topic, _, _ := strings.Cut(f.Field, ".")
		optional := f.Field == "nodes.class" || strings.HasSuffix(f.Field, ".deleted")
		if f.Records == 0 || optional && f.Filled == 0 {
			continue
		}
		fields[topic] = append(fields[topic], fmt.Sprintf("%s %s", console.Plain(f.Path), percent(f.Filled, f.Records)))
	}
	for _, topic := range slices.Sorted(maps.Keys(fields)) {
		lines = append(lines, fmt.Sprintf("fields of the %s that have a value: %s", topic,
			strings.Join(fields[topic], ", ")))
	}
	return lines
}

// percent rounds so that only all is 100 %, and only none is 0 %.
func percent(part, whole int64) string {
	p := 100 * float64(part) / float64(whole)
	switch {
	case part == whole, part == 0:
		return fmt.Sprintf("%.0f %%", p)
	case p < 0.1:
		return "under 0.1 %"
	}
	return fmt.Sprintf("%.1f %%", min(p, 99.9))
}

func earlier(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %s more by an earlier run", console.Count(n))
}

func printGraph(p *printer, d *generation.Doc) {
	g := d.Graph
	p.line("graph         %s, %s (%s hidden for the evaluation)%s",
		plural(g.Nodes, "node"), plural(g.Links, "link"), console.Count(g.Hidden), classes(g.Classes))
	var notes []string
	note := func(n int, what ...string) {
		if n > 0 {
			notes = append(notes, plural(n, what...))
		}
	}
	note(g.Isolated, "node without a neighbour", "nodes without a neighbour")
	note(g.NoText-g.FromNeighbours, "node without text or embedding", "nodes without text or embedding")
	note(g.FromNeighbours, "without text has the mean of its neighbours",
		"without text have the mean of their neighbours")
	note(g.Hubs, "hub over max_degree, label only", "hubs over max_degree, labels only")
	note(g.Dangling, "link to an unknown node left out", "links to unknown nodes left out")
	note(g.Deleted, "deleted", "deleted")
	if len(notes) > 0 {
		p.line("              %s", strings.Join(notes, "; "))
	}
	if d.TextOnly != "" {
		p.line("              made of the texts alone: %s", d.TextOnly)
	}
}

func classes(n int) string {
	if n == 0 {
		return ""
	}
	return ", " + plural(n, "class", "classes")
}

func printTree(p *printer, d *generation.Doc) {
	var levels []string
	for _, n := range d.Tree.Levels {
		levels = append(levels, console.Count(n))
	}
	if v := d.Vectorizer; v.Features > 0 { // generations of older builds do not say
		p.line("vocabulary    %s n-grams; %.1f %% of those in the texts are not in it", console.Count(v.Features),
			100*v.UnknownShare)
	}
	p.line("label tree    %s clusters; mean cosine to the leaf's centre %.3f", strings.Join(levels, " → "),
		d.Tree.MeanCosine)
	if e := d.Encoder; e.Kind != "" { // trained by now
		p.line("encoder       %s, %d dimensions, %s", e.Kind, e.Dim, console.Bytes(e.Bytes))
	}
}

// printEvaluation prints a row per encoder: what the graph is worth.
func printEvaluation(p *printer, d *generation.Doc) {
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
		if l := e.Links; l != nil {
			row = []string{"  " + name, fmt.Sprintf("%.3f ± %.3f", l.AUC, l.AUCStdErr), fmt.Sprintf("%.3f", l.MRR),
				fmt.Sprintf("%.3f", l.Hits10)}
		}
		for _, pr := range e.Probes {
			row = append(row, fmt.Sprintf("%.3f ± %.3f", pr.Accuracy, pr.StdDev))
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	p.keep(w.Flush())
	printColdStart(p, d)
	printMatcher(p, d)
}

// printColdStart prints the figures that new nodes can expect: by degree, and without any edge.
func printColdStart(p *printer, d *generation.Doc) {
	table := coldStart(d.Evaluation)
	if table == nil {
		return
	}
	p.line("")
	w := tabwriter.NewWriter(p, 0, 0, 3, ' ', 0)
	for _, row := range table {
		fmt.Fprintln(w, "  "+strings.Join(row, "\t"))
	}
	p.keep(w.Flush())
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
			row := []string{bucket.Degree, fit.Title(e.Encoder), tooFew, tooFew}
			if l := b.Links; l != nil {
				row[2] = fmt.Sprintf("%.3f ± %.3f", l.AUC, l.AUCStdErr)
				row[3] = fmt.Sprintf("%.3f ± %.3f", l.MRR, l.MRRStdErr)
			}
			for i := range rates {
				if i < len(b.Classes) {
					row = append(row, accuracy(&b.Classes[i].ClassMetrics))
				} else {
					row = append(row, tooFew)
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

// tooFew stands for a figure with fewer than eval.MinCases cases.
const tooFew = "too few"

func accuracy(m *eval.ClassMetrics) string {
	if m == nil {
		return tooFew
	}
	return fmt.Sprintf("%.3f ± %.3f", m.Accuracy, m.StdErr)
}

// printGate says loudly that a generation is worse than text alone.
func printGate(p *printer, d *generation.Doc) {
	if words := gateWords(d); words != "" {
		p.line("")
		p.line("WARNING: %s", words)
	}
}

// gateWords says what is wrong with a generation that is worse than text alone, and what became of
// it; "" for any other.
func gateWords(d *generation.Doc) string {
	warning := d.Warning()
	switch {
	case warning == "":
		return ""
	case d.Status == generation.Refused:
		return fmt.Sprintf("generation %d was refused by refresh.quality_gate, and generation %d keeps serving: %s. "+
			"The next refresh tries again; with another encoder or gate, 'giantstream embed' builds at once",
			d.Generation, d.Parent, warning)
	}
	if d.QualityGate == generation.GateBlock {
		return fmt.Sprintf("generation %d is served, since there is none before it, although %s. "+
			"Try another train.encoder", d.Generation, warning)
	}
	return fmt.Sprintf("generation %d is served although %s. Try another train.encoder; "+
		"refresh.quality_gate: block would keep the generation before", d.Generation, warning)
}

// printMatcher prints how well the trained heads predict the clusters of held-out instances'
// neighbours, per level.
func printMatcher(p *printer, d *generation.Doc) {
	var metrics struct {
		Levels []xmc.LevelMetrics `json:"levels"`
	}
	if err := json.Unmarshal(d.Encoder.Metrics, &metrics); err != nil || len(metrics.Levels) == 0 {
		return // not every encoder has heads
	}
	p.line("")
	w := tabwriter.NewWriter(p, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "  neighbourhoods of held-out nodes\tP@1\tP@3\tP@5\trecall@10")
	for _, l := range metrics.Levels {
		fmt.Fprintf(w, "  %s clusters\t%.3f\t%.3f\t%.3f\t%.3f\n",
			console.Count(l.Clusters), l.P1, l.P3, l.P5, l.Recall10)
	}
	p.keep(w.Flush())
}

func printPlaces(p *printer, cfg *config.Config, d *generation.Doc) {
	prefix := strings.TrimPrefix(cfg.Store, "file://") + "/"
	g := prefix + generation.Prefix(d.Generation)
	p.line("embeddings    %sembeddings/*.parquet  (%s)", g, size(d.Embeddings))
	p.line("training set  %sdataset/*.parquet  (%s)", g, size(d.Dataset))
	p.line("batches       %sshards/*/rows/*.parquet, committed by shards/*/manifests/*.json", prefix)
	p.line("figures       %sgeneration.json", g)
	p.line("sink topic    %s", cfg.Kafka.Topics.Embeddings)
}

// size sums up what Parquet parts hold.
func size(parts []generation.Part) string {
	var rows, bytes int64
	for _, p := range parts {
		rows += p.Rows
		bytes += p.Bytes
	}
	return fmt.Sprintf("%s rows, %s", console.Count(rows), console.Bytes(bytes))
}

// printer keeps the first error of many writes.
type printer struct {
	out io.Writer
	err error
}

func (p *printer) Write(b []byte) (int, error) {
	n, err := p.out.Write(b)
	p.keep(err)
	return n, err
}

func (p *printer) keep(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *printer) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *printer) heading(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.line("\n%s\n%s", text, strings.Repeat("─", len([]rune(text))))
}

func (r *quickstartReport) printQuickstart(out io.Writer, cfg *config.Config) error {
	if err := r.print(out, cfg); err != nil {
		return err
	}
	p := &printer{out: out}
	c := r.Committed
	p.line("committed     %d windows, %s rows, %s", c.Windows, console.Count(c.Rows), console.Bytes(c.Bytes))
	p.heading("Nearest neighbours")
	w := tabwriter.NewWriter(p, 0, 0, 3, ' ', 0)
	for _, n := range r.Nearest {
		fmt.Fprintf(w, "%s\ttext only\tgraph-aware\n", n.ID)
		for i := range n.TextOnly {
			fmt.Fprintf(w, "\t%s\t%s\n", n.TextOnly[i], n.GraphAware[i])
		}
	}
	p.keep(w.Flush())
	l := r.Live
	p.heading("Live")
	p.line("text of %s changed: its new embedding was on the sink topic after %s,", l.Node, seconds(l.TextSeconds))
	p.line("from generation %d, shard %d, manifest %d; cosine to the old one %.3f", r.Generation.Generation, l.Shard,
		l.Seq, l.Cosine)
	what := "removed"
	if !l.EdgeRemoved {
		what = "put back"
	}
	p.line("edge to %s %s: rows of both ends committed and published after %s,",
		l.Neighbour, what, seconds(l.EdgeSeconds))
	p.line("labels %d → %d; the next generation learns from it", l.LabelsBefore, l.LabelsAfter)
	p.heading("Try next (done in %s)", seconds(r.Seconds))
	p.line("giantstream inspect tree --store %s/store", r.Dir)
	p.line("giantstream inspect node --store %s/store %s", r.Dir, l.Node)
	p.line("giantstream quickstart --dir %s        # again: builds a generation on the changes", r.Dir)
	p.line("giantstream run --nodes 'n/*.jsonl.gz' --edges 'e/*.jsonl.gz' --store ./out --until-idle")
	p.line("giantstream config example > pipeline.yaml")
	return p.err
}
