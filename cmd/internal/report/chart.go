package report

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"giantstream/train/objectives/trainer"
	"giantstream/train/objectives/xrt"
)

// A chart's size in its own units, and the place of its axes.
const (
	chartWidth, chartHeight = 360, 210
	chartLeft, chartRight   = 44, 350
	chartTop, chartBottom   = 12, 178
	chartTicks              = 5
)

// point is a value of a curve.
type point struct{ X, Y float64 }

// tick is a number on an axis.
type tick struct {
	At   string // coordinate
	Text string
}

// chart is a curve, drawn. Lines are in pieces where values cannot be compared.
type chart struct {
	Title, Across string
	XTicks        []tick
	YTicks        []tick
	Lines         []string // points of polylines
	Dots          []spot
	// TextAlone: the second line is that of the text alone.
	TextAlone bool
}

type spot struct{ X, Y, Title string }

// training is what a trainer's own report has to draw: epochs of a bag, steps of a transformer.
// Other encoders have no curve.
type training struct {
	Best   int             `json:"best_epoch"`
	Epochs []xrt.BagEpoch  `json:"epochs"`
	Step   int64           `json:"best_step"`
	Curve  []trainer.Point `json:"curve"`
	Judged []trainer.Score `json:"judged"`
	// NGrams is the training of the n-grams beside a transformer.
	NGrams *training `json:"ngrams"`
}

// charts draws the curves of the training. suffix goes behind their titles.
func charts(metrics json.RawMessage) []chart {
	var report training
	if json.Unmarshal(metrics, &report) != nil {
		return nil // a report of another version: the page has no curves
	}
	if report.NGrams == nil {
		return report.charts("")
	}
	return append(report.NGrams.charts(", n-grams"), report.charts(", model")...)
}

func (report training) charts(suffix string) []chart {
	var loss, score pieces
	across, best := "epoch", float64(report.Best)
	for i, e := range report.Epochs {
		loss.add(e.Levels, float64(i+1), e.Loss)
		if e.HeldOutAUC > 0 {
			score.add(0, float64(i+1), e.HeldOutAUC)
		}
	}
	if len(report.Curve) > 0 {
		across, best = "step", float64(report.Step)
	}
	for _, p := range report.Curve {
		loss.add(p.Level, float64(p.Step), p.Loss)
	}
	for _, j := range report.Judged {
		score.add(0, float64(j.Step), j.Score)
	}
	var out []chart
	if c, ok := newChart("Training loss"+suffix, across, loss, best); ok {
		out = append(out, c)
	}
	if c, ok := newChart("AUC of held-out instances’ neighbours"+suffix, across, score, best); ok {
		out = append(out, c)
	}
	return out
}

// pieces are the stretches of a curve that have the same key.
type pieces struct {
	lines [][]point
	key   int
}

func (p *pieces) add(key int, x, y float64) {
	if math.IsNaN(y) || math.IsInf(y, 0) {
		return
	}
	if len(p.lines) == 0 || p.key != key {
		p.lines = append(p.lines, nil)
	}
	last := len(p.lines) - 1
	p.lines[last], p.key = append(p.lines[last], point{x, y}), key
}

// newChart draws the pieces, and a dot at each point where X is best, the weights that were kept.
func newChart(title, across string, p pieces, best float64) (chart, bool) {
	lo, hi := point{math.Inf(1), math.Inf(1)}, point{math.Inf(-1), math.Inf(-1)}
	n := 0
	for _, line := range p.lines {
		for _, q := range line {
			lo, hi = point{min(lo.X, q.X), min(lo.Y, q.Y)}, point{max(hi.X, q.X), max(hi.Y, q.Y)}
			n++
		}
	}
	if n < 2 {
		return chart{}, false
	}
	ys := ticks(lo.Y, hi.Y)
	lo.Y, hi.Y = min(lo.Y, ys[0]), max(hi.Y, ys[len(ys)-1])
	if hi.X == lo.X {
		hi.X++
	}
	x := func(v float64) string { return coordinate(chartLeft + (v-lo.X)/(hi.X-lo.X)*(chartRight-chartLeft)) }
	y := func(v float64) string { return coordinate(chartBottom - (v-lo.Y)/(hi.Y-lo.Y)*(chartBottom-chartTop)) }
	c := chart{Title: title, Across: across}
	for _, v := range ys {
		c.YTicks = append(c.YTicks, tick{y(v), number(v)})
	}
	for _, v := range ticks(lo.X, hi.X) {
		if v >= lo.X && v <= hi.X {
			c.XTicks = append(c.XTicks, tick{x(v), number(v)})
		}
	}
	for _, line := range p.lines {
		var b strings.Builder
		for _, q := range line {
			fmt.Fprintf(&b, "%s,%s ", x(q.X), y(q.Y))
			if q.X == best {
				c.Dots = append(c.Dots,
					spot{x(q.X), y(q.Y), fmt.Sprintf("kept: %s %s, %.4g", across, number(q.X), q.Y)})
			}
		}
		c.Lines = append(c.Lines, strings.TrimSpace(b.String()))
	}
	return c, true
}

// ticks returns round numbers that cover lo to hi.
func ticks(lo, hi float64) (out []float64) {
	if hi <= lo {
		hi = lo + max(math.Abs(lo)/10, 1e-3)
	}
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/chartTicks)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if (hi-lo)/(step*factor) <= chartTicks {
			step *= factor
			break
		}
	}
	for k := math.Floor(lo / step); ; k++ {
		out = append(out, k*step)
		if k*step >= hi {
			return out
		}
	}
}

func number(v float64) string {
	if math.Abs(v) < 1e-12 {
		return "0"
	}
	return fmt.Sprintf("%.4g", v)
}

// coordinate rounds to a tenth of a unit, to keep pages small.
func coordinate(v float64) string { return fmt.Sprintf("%.1f", v) }
