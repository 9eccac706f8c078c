package evaluate

import (
	"fmt"
	"html"
	"strings"

	"giantstream/train/generation/study"
)

// drawAblation draws the table as an SVG: a group of bars per figure that any row has,
// with a line for one standard deviation to either side.
func drawAblation(t *study.Ablation, columns []figure) string {
	const (
		width, names, right = 760, 250, 110
		bar, gap, heading   = 18, 5, 34
	)
	var body strings.Builder
	y := 40
	for _, c := range columns {
		spreads := make([]study.Spread, len(t.Rows))
		longest := 0.0
		for i, r := range t.Rows {
			spreads[i] = r.SpreadOf(c.value)
			longest = max(longest, spreads[i].Mean+spreads[i].StdDev)
		}
		if longest == 0 {
			continue // no row has the figure
		}
		x := func(v float64) float64 { return names + max(v, 0)/longest*(width-names-right) }
		fmt.Fprintf(&body, `<text x="%d" y="%d" font-weight="bold">%s</text>`+"\n",
			names, y+20, html.EscapeString(c.name))
		y += heading
		for i, s := range spreads {
			r := t.Rows[i]
			middle := float64(y) + bar/2
			fmt.Fprintf(&body, `<text x="%d" y="%.0f" text-anchor="end">%s (%s)</text>`,
				names-8, middle+4, html.EscapeString(r.Row), html.EscapeString(r.Encoder))
			if s != (study.Spread{}) {
				fmt.Fprintf(&body, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`,
					names, y, x(s.Mean)-names, bar, barColour(r.Row))
				fmt.Fprintf(&body, `<line x1="%.1f" y1="%.0f" x2="%.1f" y2="%.0f" stroke="#333"/>`,
					x(s.Mean-s.StdDev), middle, x(s.Mean+s.StdDev), middle)
			}
			fmt.Fprintf(&body, `<text x="%.1f" y="%.0f">%s</text>`+"\n", x(s.Mean+s.StdDev)+6, middle+4, s)
			y += bar + gap
		}
	}
	title := fmt.Sprintf("%d nodes, %g %% of the edges hidden; mean and standard deviation of %s", t.Graph.Nodes,
		100*t.Holdout, times(len(t.Seeds)))
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" `+
		`font-family="sans-serif" font-size="12" fill="#333">`+"\n"+
		`<rect width="100%%" height="100%%" fill="white"/>`+"\n"+
		`<text x="8" y="22" font-size="14">%s</text>`+"\n%s</svg>\n",
		width, y+12, html.EscapeString(title), body.String())
}

// barColour is the colour of what a row uses of the graph: nothing, links or neighbourhoods.
func barColour(row string) string {
	switch {
	case row == "text":
		return "#9aa5b1"
	case row == "link prediction":
		return "#e8a33d"
	}
	return "#3b78b5"
}
