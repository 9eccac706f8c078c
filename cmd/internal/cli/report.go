package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/service"
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

func earlier(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %s more by an earlier run", console.Count(n))
}
