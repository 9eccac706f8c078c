package generations

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/report"
	"giantstream/train/generation"
)

// Report is 'giantstream report'.
func Report(a *command.App) *cobra.Command {
	var (
		output string
		nodes  []string
	)
	cmd := a.AboutGeneration(&cobra.Command{
		Use: "report", Short: "Write a page about a generation: figures, training, tree, map, neighbours",
		Long: `Write one HTML page about a generation: what it was made of, how its training
went, its label tree with the terms of each cluster, a map of its embeddings, the
nearest neighbours of some nodes beside those of their texts alone, what its input
is like, what it is worth in the evaluation, what has changed since the generation
before, and the figures of all generations.

With --node, the page begins with these nodes: their neighbours in the graph, what
is similar to them, and their clusters.

The page loads nothing, and its one script searches the nodes of the map. It shows
ids and beginnings of texts.

With a file name in .svg, write the map alone as a picture, beside the map of the
texts alone.`,
		Example: `  giantstream report --store ./out
  giantstream report --store ./out --node B00004TKVY -o product.html
  giantstream report --store ./out -o map.svg
  giantstream report --store ./out --generation 3 -o generation-3.html`,
	}, func(ctx context.Context, pipe *command.Pipeline, doc *generation.Doc) error {
		if output == "" {
			output = fmt.Sprintf("generation-%d.html", doc.Generation)
		}
		source, err := pipe.Source(ctx, doc.Cut)
		if err != nil {
			return err
		}
		in := report.Input{Store: pipe.Store, Doc: doc, Source: source, Nodes: nodes, Progress: pipe.Progress}
		if doc.Parent > 0 {
			in.Parent, err = generation.Load(ctx, pipe.Store, doc.Parent)
			if err != nil && !errors.Is(err, generation.ErrNone) {
				return err
			}
		}
		if output == "-" {
			err = report.Write(ctx, a.Out, in)
			pipe.Progress.Done()
			return err
		}
		err = writeReport(ctx, output, in)
		pipe.Progress.Done()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(a.Out, output)
		return err
	})
	cmd.Flags().StringVarP(&output, "output", "o", "",
		"`file` to write, - for the standard output (default generation-N.html)")
	cmd.Flags().StringArrayVar(&nodes, "node", nil, "say more of the node with this `ID`; may be repeated")
	return cmd
}

// writeReport writes the page whole or not at all.
func writeReport(ctx context.Context, path string, in report.Input) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	write := report.Write
	if strings.EqualFold(filepath.Ext(path), ".svg") {
		write = report.WritePicture
	}
	if err := errors.Join(write(ctx, f, in), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
