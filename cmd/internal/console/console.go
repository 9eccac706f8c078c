// Package console shows long work to people: a progress bar per stage on a terminal, one log line
// per stage elsewhere, and one a minute of a stage that takes longer.
//
// The rules for output: results go to stdout, everything else to stderr; nothing but a bar is ever
// redrawn; colours and bars only on a terminal and without NO_COLOR.
package console

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Terminal reports whether w is a terminal that bars may be drawn on.
func Terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// Progress implements the Progress interfaces of the packages below. Stages follow one another; a
// stage that starts ends the one before.
type Progress struct {
	mu    sync.Mutex
	out   io.Writer
	log   *slog.Logger // used when out is no terminal
	bar   *progressbar.ProgressBar
	name  string
	count int64
	total int64
	begin time.Time
	still *time.Timer // says that a stage goes on, where there is no bar
}

// sayStill is how often a log says that a stage goes on.
const sayStill = time.Minute

// New returns a Progress that draws on out if it is a terminal, else logs.
func New(out io.Writer, log *slog.Logger) *Progress {
	p := &Progress{out: out, log: log}
	if Terminal(out) {
		p.log = nil
	}
	return p
}

// Stage ends the running stage and starts one of total units (0: unknown).
func (p *Progress) Stage(name string, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
	p.name, p.count, p.total, p.begin = name, 0, total, time.Now()
	if p.log != nil {
		p.still = time.AfterFunc(sayStill, func() { p.goesOn(name) })
		return
	}
	if total <= 0 {
		total = -1 // a spinner
	}
	p.bar = progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(p.out),
		progressbar.OptionSetDescription(fmt.Sprintf("  %-28s", name)),
		progressbar.OptionSetWidth(30),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSpinnerType(14),
	)
	_ = p.bar.RenderBlank() // from here on a spinner draws itself
}

// goesOn logs how far a stage is, unless another has begun.
func (p *Progress) goesOn(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.name != name {
		return
	}
	about := []any{"stage", name, "units", p.count}
	if p.total > 0 {
		about = append(about, "of", p.total)
	}
	p.log.Info("stage goes on", append(about, "seconds", time.Since(p.begin).Round(time.Second).Seconds())...)
	p.still.Reset(sayStill)
}

// Add reports n more units of the running stage.
func (p *Progress) Add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count += n
	if p.bar != nil {
		_ = p.bar.Add64(n) // a bar that cannot be drawn must not stop the work
	}
}

// Note shows words on the running stage, on a terminal.
func (p *Progress) Note(words string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		p.bar.Describe(fmt.Sprintf("  %-28s %s ", p.name, words))
	}
}

// Done ends the last stage.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
}

func (p *Progress) end() {
	if p.name == "" {
		return
	}
	took := time.Since(p.begin)
	switch {
	case p.log != nil:
		p.still.Stop()
		p.log.Info("stage done", "stage", p.name, "units", p.count, "seconds", took.Round(time.Millisecond).Seconds())
	default:
		_ = p.bar.Finish() // stops a spinner's own redrawing
		_ = p.bar.Clear()
		fmt.Fprintf(p.out, "  %-28s %8s\n", p.name, Duration(took))
	}
	p.name, p.bar = "", nil
}

// Duration formats d with three significant figures: "840 ms", "12.3 s", "4 min 5 s".
func Duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 100*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	default:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
}

// Bytes formats a size with binary units: "12.3 MiB".
func Bytes(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/1024, 0
	for v >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	return fmt.Sprintf("%.1f %ciB", v, units[i])
}

// Count formats n with thousands separators: "63,666".
func Count[T ~int | ~int64](n T) string {
	s := fmt.Sprint(int64(n))
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(s) - 3; i > first; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
