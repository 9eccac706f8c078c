package command

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"giantstream/cmd/internal/console"
)

// TooFew stands for a figure with fewer than eval.MinCases cases.
const TooFew = "too few"

// Printer keeps the first error of many writes.
type Printer struct {
	Out io.Writer
	Err error
}

func (p *Printer) Write(b []byte) (int, error) {
	n, err := p.Out.Write(b)
	p.Keep(err)
	return n, err
}

// Keep keeps an error, unless there is one already.
func (p *Printer) Keep(err error) {
	if p.Err == nil {
		p.Err = err
	}
}

// Line writes a formatted line.
func (p *Printer) Line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// Heading writes an underlined line after an empty one.
func (p *Printer) Heading(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.Line("\n%s\n%s", text, strings.Repeat("─", len([]rune(text))))
}

// Plural returns a count with its noun: the one of one, and else the other one, or the first with an s.
func Plural[T ~int | ~int64](n T, nouns ...string) string {
	noun := nouns[0]
	if n != 1 && len(nouns) > 1 {
		noun = nouns[1]
	} else if n != 1 {
		noun += "s"
	}
	return console.Count(n) + " " + noun
}

// Percent rounds so that only all is 100 %, and only none is 0 %.
func Percent(part, whole int64) string {
	p := 100 * float64(part) / float64(whole)
	switch {
	case part == whole, part == 0:
		return fmt.Sprintf("%.0f %%", p)
	case p < 0.1:
		return "under 0.1 %"
	}
	return fmt.Sprintf("%.1f %%", min(p, 99.9))
}

// Seconds returns a time in seconds as console.Duration prints it.
func Seconds(s float64) string { return console.Duration(time.Duration(s * float64(time.Second))) }

// WriteJSON writes a value as indented JSON.
func WriteJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Shorten returns the first characters of a text, on one line.
func Shorten(text string, most int) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) <= most {
		return console.Plain(string(runes))
	}
	return console.Plain(string(runes[:most-1])) + "…"
}
