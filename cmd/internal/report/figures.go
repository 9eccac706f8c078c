package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"giantstream/cmd/internal/console"
	"giantstream/train/generation"
	"giantstream/train/generation/eval"
	"giantstream/train/generation/fit"
)

// setting is a field of generation.json's settings, as JSON.
type setting struct{ Name, Value string }

func settings(s fit.Settings) ([]setting, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	var out []setting
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		out = append(out, setting{name, string(bytes.Trim(fields[name], `"`))})
	}
	return out, nil
}

// scores are the tables of the evaluation.
type scores struct {
	Cold     []cold    // by degree
	Rates    []float64 // of the class probes
	Encoders []scored
}

// scored is an encoder's line; cells that it has no figure for are "–".
type scored struct {
	Name, AUC, MRR, Hits string
	Probes               []string
}

// cold is an encoder's line for the nodes in a bucket of degrees.
type cold struct {
	Degree, Name, AUC, MRR string
	Classes                []string // a cell per rate
	// Others is the accuracy of the probe that is trained on the nodes with edges.
	Others string
}

const tooFew = "too few"

// coldOf returns the lines by degree, text alone beside the encoder in each bucket.
func coldOf(evaluations []fit.Evaluation, rates int) (out []cold) {
	accuracy := func(m *eval.ClassMetrics) string {
		if m == nil {
			return tooFew
		}
		return spread(m.Accuracy, m.StdErr)
	}
	for k, name := range eval.DegreeBuckets {
		for _, e := range evaluations {
			if k >= len(e.ByDegree) { // of a build that did not measure by degree
				continue
			}
			b := e.ByDegree[k]
			if b.Edges == 0 && b.Labelled == 0 {
				continue
			}
			row := cold{Degree: name, Name: fit.Title(e.Encoder), AUC: tooFew, MRR: tooFew}
			if l := b.Links; l != nil {
				row.AUC, row.MRR = spread(l.AUC, l.AUCStdErr), spread(l.MRR, l.MRRStdErr)
			}
			for r := range rates {
				cell := tooFew
				if r < len(b.Classes) {
					cell = accuracy(&b.Classes[r].ClassMetrics)
				}
				row.Classes = append(row.Classes, cell)
			}
			if k == 0 {
				row.Others = accuracy(e.Isolated)
			}
			out = append(out, row)
		}
	}
	return out
}

func scoresOf(doc *generation.Doc) (s scores) {
	for _, e := range doc.Evaluation {
		row := scored{Name: fit.Title(e.Encoder), AUC: "–", MRR: "–", Hits: "–"}
		if l := e.Links; l != nil {
			row.AUC, row.MRR, row.Hits = spread(l.AUC, l.AUCStdErr), spread(l.MRR, l.MRRStdErr),
				spread(l.Hits10, l.Hits10StdErr)
		}
		for _, p := range e.Probes {
			if len(s.Encoders) == 0 {
				s.Rates = append(s.Rates, p.Rate)
			}
			row.Probes = append(row.Probes, spread(p.Accuracy, p.StandardError()))
		}
		s.Encoders = append(s.Encoders, row)
	}
	s.Cold = coldOf(doc.Evaluation, len(s.Rates))
	return s
}

func spread(mean, stdErr float64) string { return fmt.Sprintf("%.3f ± %.3f", mean, stdErr) }

// changes are what is different from the generation before.
type changes struct {
	Parent   *generation.Doc
	Settings []difference
	Figures  []difference
}

// difference is a figure then and now.
type difference struct{ Name, Before, After, By string }

// changesSince returns nil where there is no generation before.
func changesSince(before, after *generation.Doc) (*changes, error) {
	if before == nil {
		return nil, nil
	}
	c := &changes{Parent: before}
	if err := c.addSettings(before, after); err != nil {
		return nil, err
	}
	c.count("nodes", before.Graph.Nodes, after.Graph.Nodes)
	c.count("links", before.Graph.Links, after.Graph.Links)
	c.count("nodes without a neighbour", before.Graph.Isolated, after.Graph.Isolated)
	c.count("classes", before.Graph.Classes, after.Graph.Classes)
	c.count("n-grams", before.Vectorizer.Features, after.Vectorizer.Features)
	c.ratio("share of unknown n-grams", before.Vectorizer.UnknownShare, after.Vectorizer.UnknownShare)
	c.count("clusters of the finest level", finest(before), finest(after))
	c.ratio("cosine to the leaf’s centre", before.Tree.MeanCosine, after.Tree.MeanCosine)
	for _, e := range after.Evaluation {
		for _, o := range before.Evaluation {
			if o.Encoder == e.Encoder {
				c.addEvaluation(o, e)
			}
		}
	}
	return c, nil
}

// addSettings adds those that differ.
func (c *changes) addSettings(before, after *generation.Doc) error {
	old, err := settings(before.Settings)
	if err != nil {
		return err
	}
	now, err := settings(after.Settings)
	if err != nil {
		return err
	}
	values := map[string]string{}
	for _, s := range old {
		values[s.Name] = s.Value
	}
	for _, s := range now {
		if values[s.Name] != s.Value {
			c.Settings = append(c.Settings, difference{s.Name, values[s.Name], s.Value, ""})
		}
		delete(values, s.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		c.Settings = append(c.Settings, difference{name, values[name], "", ""})
	}
	return nil
}

// addEvaluation adds the figures of an encoder.
func (c *changes) addEvaluation(before, after fit.Evaluation) {
	name := fit.Title(after.Encoder) + ": "
	if before.Links != nil && after.Links != nil {
		c.ratio(name+"link AUC", before.Links.AUC, after.Links.AUC)
		c.ratio(name+"MRR", before.Links.MRR, after.Links.MRR)
		c.ratio(name+"hits@10", before.Links.Hits10, after.Links.Hits10)
	}
	for k := range min(len(before.Probes), len(after.Probes)) {
		if o, e := before.Probes[k], after.Probes[k]; o.Rate == e.Rate {
			c.ratio(fmt.Sprintf("%sclass, %g %% labelled", name, 100*e.Rate), o.Accuracy, e.Accuracy)
		}
	}
}

// count adds a number of things.
func (c *changes) count(name string, before, after int) {
	by := console.Count(after - before)
	if after > before {
		by = "+" + by
	}
	c.Figures = append(c.Figures, difference{name, console.Count(before), console.Count(after), by})
}

// ratio adds a figure between 0 and 1.
func (c *changes) ratio(name string, before, after float64) {
	c.Figures = append(c.Figures, difference{name, fmt.Sprintf("%.3f", before), fmt.Sprintf("%.3f", after),
		fmt.Sprintf("%+.3f", after-before)})
}

func finest(doc *generation.Doc) int {
	if len(doc.Tree.Levels) == 0 {
		return 0
	}
	return doc.Tree.Levels[len(doc.Tree.Levels)-1]
}
