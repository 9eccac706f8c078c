package evaluate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/train/generation"
	"giantstream/train/generation/study"
)

// ablate computes the ablation table, prints it as text or JSON, and draws it if a file is named.
func ablate(ctx context.Context, a *command.App, options study.Options, source generation.Source, seeds []uint64,
	picture string, asJSON bool, done func()) (err error) {
	var file *os.File
	if picture != "" {
		// Fails before hours of training, not after them.
		f, err := os.Create(picture)
		if err != nil {
			return command.UsageError(fmt.Errorf("--picture: %w", err))
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
		return command.WriteJSON(a.Out, table)
	}
	return printAblation(a, table, columns)
}

func printAblation(a *command.App, t *study.Ablation, columns []figure) error {
	fmt.Fprintf(a.Out, "%s nodes, %s links, %g %% of the edges hidden; mean ± standard deviation of %s\n\n",
		console.Count(t.Graph.Nodes), console.Count(t.Graph.Links), 100*t.Holdout, times(len(t.Seeds)))
	w := tabwriter.NewWriter(a.Out, 0, 0, 3, ' ', 0)
	head := []string{"features from", "encoder"}
	for _, c := range columns {
		head = append(head, c.name)
	}
	fmt.Fprintln(w, strings.Join(append(head, "seconds"), "\t"))
	for _, r := range t.Rows {
		row := []string{r.Row, r.Encoder}
		for _, c := range columns {
			row = append(row, r.SpreadOf(c.value).String())
		}
		took := r.Time()
		fmt.Fprintln(w, strings.Join(append(row, fmt.Sprintf("%.1f ± %.1f", took.Mean, took.StdDev)), "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.Out, "\nSeconds are those of training and embedding; "+
		"reading, vectorizing and projecting the texts took %.1f more, once.\n", t.SharedSeconds)
	return err
}
