package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"giantstream/cmd/internal/console"
)

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

func seconds(s float64) string { return console.Duration(time.Duration(s * float64(time.Second))) }

func writeJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
