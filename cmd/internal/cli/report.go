package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/service"
	"giantstream/cmd/internal/service/ingesting"
	"giantstream/config"
	"giantstream/ingest/backfill"
	"giantstream/ingest/preview"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
)

// runReport describes what a run until idle has done.
type runReport struct {
	Store string          `json:"store"`
	Sent  *backfill.Stats `json:"sent,omitempty"`
	// Mapped is what the first records of the files said, nil without files.
	Mapped      *preview.Preview        `json:"mapped,omitempty"`
	DeadLetters service.DeadLetterCount `json:"dead_letters"`
	// Read is what became of the records of each input.
	Read []ingesting.InputOutcomes `json:"read"`
	// Lost is what the topics had deleted before it was read, and nobody has accepted.
	Lost []commitlog.ShardLost `json:"lost,omitempty"`
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

func (r *runReport) print(out io.Writer, cfg *config.Config) error {
	d := r.Generation
	p := &command.Printer{Out: out}
	switch {
	case d == nil:
		p.Heading("Everything that was sent is committed")
	case r.Refused != nil:
		p.Heading("Generation %d was refused; generation %d keeps serving", r.Refused.Generation, d.Generation)
	case r.Built:
		p.Heading("Generation %d is ready", d.Generation)
	default:
		p.Heading("Up to date: no text, link or order has changed since generation %d", d.Generation)
	}
	r.printSent(p)
	if d != nil {
		printGraph(p, d)
	}
	printRead(p, r.Read)
	if r.DeadLetters.Total > 0 {
		p.Line("dead letters  %s: %s", console.Count(r.DeadLetters.Total), r.DeadLetters)
	}
	for _, l := range r.Lost {
		p.Line("LOST          %s", l)
	}
	if r.Shrunk != "" {
		p.Line("LOST          %s", r.Shrunk)
	}
	if d != nil {
		r.printGeneration(p, cfg, d)
	}
	return p.Err
}

// printSent prints what was sent from files, and what may be wrong with it.
func (r *runReport) printSent(p *command.Printer) {
	if s := r.Sent; s != nil {
		p.Line("sent          %s%s", sentRecords(s), earlier(s.Resumed))
		for _, line := range inputLines(s) {
			p.Line("              %s", line)
		}
	}
	if r.Mapped != nil {
		for _, warning := range r.Mapped.Warnings() {
			p.Line("WARNING       %s", console.Plain(warning))
		}
	}
	if s := r.Sent; s != nil {
		if warning := command.StaleWarning(s); warning != "" {
			p.Line("              %s", warning)
		}
	}
}

// printGeneration prints what the generation that is served is worth, what took how long, and where things are.
func (r *runReport) printGeneration(p *command.Printer, cfg *config.Config, d *generation.Doc) {
	printTree(p, d)
	p.Line("")
	printEvaluation(p, d)
	printGate(p, d)
	if r.Refused != nil {
		p.Line("")
		p.Line("Generation %d, refused:", r.Refused.Generation)
		printEvaluation(p, r.Refused)
		printGate(p, r.Refused)
	}
	p.Heading("Time")
	for _, l := range r.Laps {
		p.Line("%-28s %9s", l.Name, command.Seconds(l.Seconds))
		if l.Name == "generation" && r.Built {
			for _, s := range d.Stages {
				p.Line("  %-26s %9s", s.Name, command.Seconds(s.Seconds))
			}
		}
	}
	p.Heading("Where things are")
	printPlaces(p, cfg, d)
	if dir, ok := strings.CutPrefix(cfg.Store, "file://"); ok {
		p.Heading("What to look at")
		p.Line("giantstream similar ID --store %s", dir)
		p.Line("giantstream report --store %s -o page.html", dir)
	}
}

// printRead prints what became of the records that were read, an input a line.
func printRead(p *command.Printer, inputs []ingesting.InputOutcomes) {
	label, superseded := "read", false
	for _, in := range inputs {
		if in.Sum() == 0 {
			continue
		}
		p.Line("%-13s %s", label, outcomeLine(in))
		label, superseded = "", superseded || in.Superseded > 0
	}
	if superseded {
		p.Line("              superseded: the graph has newer statements on the same nodes and links. A record without")
		p.Line("              a time of its own has that of its file's last modification (ingest.*.event_time)")
	}
}

// outcomeLine says what became of the records of an input.
func outcomeLine(in ingesting.InputOutcomes) string {
	letters := "dead letters"
	if in.DeadLetters == 1 {
		letters = "dead letter"
	}
	var parts []string
	for _, o := range []struct {
		n    int64
		name string
	}{{in.Applied, "applied"}, {in.Superseded, "superseded"}, {in.Repeated, "repeated"}, {in.Expired, "expired"},
		{in.DeadLetters, letters},
		{in.Empty, "that say nothing"}} {
		if o.n > 0 {
			parts = append(parts, console.Count(o.n)+" "+o.name)
		}
	}
	what := command.Plural(in.Sum(), "record")
	if in.Applied == 0 {
		what += " changed nothing"
	}
	input := in.Input
	if input != in.Topic {
		input += " of " + console.Plain(in.Topic)
	}
	return fmt.Sprintf("%s: %s: %s", input, what, strings.Join(parts, ", "))
}

// sentRecords says how many records of each input were sent.
func sentRecords(s *backfill.Stats) string {
	words := []string{command.Plural(s.Nodes, "node record"), command.Plural(s.Edges, "edge record")}
	if s.Attributes > 0 {
		words = append(words, command.Plural(s.Attributes, "record of attributes", "records of attributes"))
	}
	if s.Orders > 0 {
		words = append(words, command.Plural(s.Orders, "record of orders", "records of orders"))
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// idleLines say which files sent nothing.
func idleLines(idle *backfill.IdleFiles) (lines []string) {
	for _, file := range idle.Files {
		lines = append(lines, console.Plain(fmt.Sprintf("%s sent nothing: %s", file.Name, file.Why)))
	}
	if more := idle.Count - int64(len(idle.Files)); more > 0 {
		lines = append(lines, command.Plural(more, "more file sent nothing", "more files sent nothing"))
	}
	return lines
}

// inputLines say how files were read, and how full the mapped fields are in all that was sent.
func inputLines(s *backfill.Stats) (lines []string) {
	for _, note := range s.Notes {
		lines = append(lines, console.Plain(note))
	}
	if s.BadRows > 0 {
		lines = append(lines, command.Plural(s.BadRows, "line is no CSV row: a dead letter",
			"lines are no CSV rows: dead letters"))
	}
	if s.Skipped > 0 {
		lines = append(lines, command.Plural(s.Skipped, "node record without text left out",
			"node records without text left out"))
	}
	if s.MissingNodes+s.MissingEdges > 0 {
		lines = append(lines, fmt.Sprintf("deletions sent of what the export lacks: %s, %s",
			command.Plural(s.MissingNodes, "node"), command.Plural(s.MissingEdges, "edge")))
	}
	lines = append(lines, idleLines(&s.Idle)...)
	fields := map[string][]string{}
	for _, f := range s.Fields {
		topic, _, _ := strings.Cut(f.Field, ".")
		optional := f.Field == "nodes.class" || strings.HasSuffix(f.Field, ".deleted")
		if f.Records == 0 || optional && f.Filled == 0 {
			continue
		}
		fields[topic] = append(fields[topic],
			fmt.Sprintf("%s %s", console.Plain(f.Path), command.Percent(f.Filled, f.Records)))
	}
	for _, topic := range slices.Sorted(maps.Keys(fields)) {
		lines = append(lines, fmt.Sprintf("fields of the %s that have a value: %s", topic,
			strings.Join(fields[topic], ", ")))
	}
	return lines
}

func earlier(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %s more by an earlier run", console.Count(n))
}
