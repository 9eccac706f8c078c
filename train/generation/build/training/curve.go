package training

import (
	"context"
	"fmt"
	"math"
	"strings"

	"giantstream/sink"
	"giantstream/train/generation"
	"giantstream/train/objectives/trainer"
)

// curveName is a picture of the training of a transformer.
const curveName = "encoder/loss.svg"

// drawCurve stores a picture of the training of generation g's encoder.
func drawCurve(ctx context.Context, store sink.Store, g int64, r trainer.Report) error {
	if len(r.Curve) == 0 {
		return nil
	}
	data := curveSVG(r)
	return store.Put(ctx, generation.Prefix(g)+curveName, strings.NewReader(data), int64(len(data)))
}

// curveSVG draws the loss over the steps, the ends of the levels' stages and the
// validation scores.
func curveSVG(r trainer.Report) string {
	const width, height, left, top, right, bottom = 760, 380, 60, 40, 60, 40
	steps := float64(max(r.Steps, 1))
	x := func(step int64) float64 { return left + float64(step)/steps*(width-left-right) }
	least, most := math.Inf(1), math.Inf(-1)
	for _, p := range r.Curve {
		least, most = min(least, p.Loss), max(most, p.Loss)
	}
	if most == least {
		most++
	}
	at := func(v, lo, hi float64) float64 { return top + (hi-v)/(hi-lo)*(height-top-bottom) }

	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" `+
		`font-family="sans-serif" font-size="12" fill="#333">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="20" font-size="14">`+
		"Training loss of %d steps on %d instances; kept: step %d</text>\n",
		left, r.Steps, r.Instances, r.Step)
	for k := range 5 {
		v := least + (most-least)*float64(k)/4
		y := at(v, least, most)
		fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>`+
			`<text x="%d" y="%.1f" text-anchor="end">%.3g</text>`+"\n",
			left, y, width-right, y, left-6, y+4, v)
	}
	line := func(color string, points []string) {
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/>`+"\n", color,
			strings.Join(points, " "))
	}
	var points []string
	for k, p := range r.Curve {
		if k > 0 && p.Level != r.Curve[k-1].Level {
			line("#1f77b4", points)
			points = nil
			fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#999" stroke-dasharray="4 3"/>`+
				`<text x="%.1f" y="%d">level %d</text>`+"\n",
				x(r.Curve[k-1].Step), top, x(r.Curve[k-1].Step), height-bottom, x(r.Curve[k-1].Step)+4, top+12, p.Level)
		}
		points = append(points, fmt.Sprintf("%.1f,%.1f", x(p.Step), at(p.Loss, least, most)))
	}
	line("#1f77b4", points)
	points = nil
	for _, j := range r.Scores {
		y := at(j.Score, 0.5, 1)
		points = append(points, fmt.Sprintf("%.1f,%.1f", x(j.Step), y))
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="#d62728">`+
			`<title>step %d: held-out AUC %.4f</title></circle>`+"\n",
			x(j.Step), y, j.Step, j.Score)
	}
	if len(points) > 0 {
		line("#d62728", points)
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#d62728">AUC 1</text>`+
			`<text x="%d" y="%d" fill="#d62728">0.5</text>`+"\n",
			width-right+6, top+4, width-right+6, height-bottom+4)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d">0</text><text x="%d" y="%d" text-anchor="end">%d steps</text>`+"\n</svg>\n",
		left, height-bottom+18, width-right, height-bottom+18, r.Steps)
	return b.String()
}
