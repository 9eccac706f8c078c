package report

import (
	"fmt"

	"giantstream/train/generation"
)

// past is a line of the table of all generations.
type past struct {
	generation.Summary
	// Encoder and text alone: link AUC, MRR and class accuracy, "–" for what was not measured.
	Own, Text [3]string
	Kept      string
}

// pastOf returns the generations up to this one, oldest first.
func pastOf(doc *generation.Doc) (out []past) {
	for _, s := range append(doc.History[:len(doc.History):len(doc.History)], doc.Summary()) {
		p := past{Summary: s, Kept: figure(s.NeighboursKept)}
		var own, text generation.Figures
		if n := len(s.Figures); n > 0 {
			own, text = s.Figures[n-1], s.Figures[0]
		}
		p.Own = [3]string{figure(own.LinkAUC), figure(own.MRR), figure(own.Class)}
		p.Text = [3]string{figure(text.LinkAUC), figure(text.MRR), figure(text.Class)}
		out = append(out, p)
	}
	return out
}

func figure(x *float64) string {
	if x == nil {
		return "–"
	}
	return fmt.Sprintf("%.3f", *x)
}

// timeline draws the figures of all generations: the encoder's, and text alone dashed.
func timeline(all []past) (out []chart) {
	for _, of := range []struct {
		title string
		value func(generation.Figures) *float64
	}{
		{"Link AUC", func(f generation.Figures) *float64 { return f.LinkAUC }},
		{"MRR", func(f generation.Figures) *float64 { return f.MRR }},
		{"Class accuracy", func(f generation.Figures) *float64 { return f.Class }},
	} {
		var p pieces
		for key, at := range []func([]generation.Figures) generation.Figures{
			func(f []generation.Figures) generation.Figures { return f[len(f)-1] },
			func(f []generation.Figures) generation.Figures { return f[0] },
		} {
			for _, g := range all {
				if len(g.Figures) == 0 {
					continue
				}
				if v := of.value(at(g.Figures)); v != nil {
					p.add(key, float64(g.Generation), *v)
				}
			}
		}
		if c, ok := newChart(of.title, "generation", p, -1); ok && len(all) > 1 {
			c.TextAlone = true
			out = append(out, c)
		}
	}
	return out
}
