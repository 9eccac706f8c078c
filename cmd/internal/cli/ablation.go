package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"giantstream/cmd/internal/console"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
	"giantstream/train/generation/study"
)

// ablate computes the ablation table, prints it as text or JSON, and draws it if a file is named.
func (a *app) ablate(ctx context.Context, options study.Options, source generation.Source, seeds []uint64,
	picture string, asJSON bool, done func()) (err error) {
	var file *os.File
	if picture != "" {
		// Fails before hours of training, not after them.
		f, err := os.Create(picture)
		if err != nil {
			return usageError{fmt.Errorf("--picture: %w", err)}
		}
		file = f
		defer func() {
			if err = errors.Join(err, f.Close()); err != nil {
				err = errors.Join(err, os.Remove(picture))
			}
		}()
	}
	table, err := study.Ablate(ctx, options, source, seeds)
	done()
	if err != nil {
		return err
	}
	columns := figures(options.Settings.ProbeRates)
	if file != nil {
		if _, err := io.WriteString(file, drawAblation(table, columns)); err != nil {
			return err
		}
	}
	if asJSON {
		return writeJSON(a.out, table)
	}
	return a.printAblation(table, columns)
}

// figure is a column of the tables of evaluations.
type figure struct {
	name string
	of   func(fit.Evaluation) (float64, bool)
}

// figures are the columns: links, and a class probe per rate.
func figures(rates []float64) []figure {
	link := func(get func(fit.Evaluation) float64) func(fit.Evaluation) (float64, bool) {
		return func(e fit.Evaluation) (float64, bool) {
			if e.Links == nil {
				return 0, false
			}
			return get(e), true
		}
	}
	out := []figure{
		{"link AUC", link(func(e fit.Evaluation) float64 { return e.Links.AUC })},
		{"MRR", link(func(e fit.Evaluation) float64 { return e.Links.MRR })},
		{"hits@10", link(func(e fit.Evaluation) float64 { return e.Links.Hits10 })},
	}
	for _, rate := range rates {
		name := fmt.Sprintf("class, %g %% labelled", 100*rate)
		out = append(out, figure{name, func(e fit.Evaluation) (float64, bool) {
			for _, p := range e.Probes {
				if p.Rate == rate {
					return p.Accuracy, true
				}
			}
			return 0, false
		}})
	}
	return out
}

func (a *app) printAblation(t *study.Ablation, columns []figure) error {
	fmt.Fprintf(a.out, "%s nodes, %s links, %g %% of the edges hidden; mean ± standard deviation of %s\n\n",
		console.Count(t.Graph.Nodes), console.Count(t.Graph.Links), 100*t.Holdout, times(len(t.Seeds)))
	w := tabwriter.NewWriter(a.out, 0, 0, 3, ' ', 0)
	head := []string{"features from", "encoder"}
	for _, c := range columns {
		head = append(head, c.name)
	}
	fmt.Fprintln(w, strings.Join(append(head, "seconds"), "\t"))
	for _, r := range t.Rows {
		row := []string{r.Row, r.Encoder}
		for _, c := range columns {
			row = append(row, r.Over(c.of).String())
		}
		took := r.Time()
		fmt.Fprintln(w, strings.Join(append(row, fmt.Sprintf("%.1f ± %.1f", took.Mean, took.StdDev)), "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.out, "\nSeconds are those of training and embedding; "+
		"reading, vectorizing and projecting the texts took %.1f more, once.\n", t.SharedSeconds)
	return err
}

// times says how many runs there were.
func times(n int) string {
	if n == 1 {
		return "one run"
	}
	return fmt.Sprintf("%d runs", n)
}
