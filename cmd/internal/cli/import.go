package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/ingest/ogb"
)

func importCommand(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "import",
		Short:   "Turn the download of a known data set into files to ingest",
		Example: "  giantstream import ogb dataset/ogbn_arxiv --name ogbn-arxiv --out arxiv",
	}
	cmd.AddCommand(importOGB(a))
	return cmd
}

func importOGB(a *command.App) *cobra.Command {
	var name, out string
	cmd := &cobra.Command{
		Use:   "ogb DIR",
		Short: "Read a data set of the Open Graph Benchmark",
		Long: `Read the raw download of ogbn-arxiv, ogbn-products or ogbn-papers100M in DIR, with its
text files, and write what 'run' and 'backfill' ingest: nodes.jsonl.zst (id, text,
label, year, paper_id or asin), edges.jsonl.zst (src, dst) and the official split
as split.csv, for 'evaluate heads --split'. docs/PAPER.md says which files DIR must
hold, and repeats the paper's tables with them.

Texts are sorted by node in a temporary folder below --out, which takes as much
space as they do.`,
		Example: `  giantstream import ogb dataset/ogbn_arxiv --name ogbn-arxiv --out arxiv
  giantstream run --nodes arxiv/nodes.jsonl.zst --edges arxiv/edges.jsonl.zst --store ./store --until-idle
  giantstream evaluate heads --store ./store --split arxiv/split.csv`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			log, err := a.Logger("", "")
			if err != nil {
				return err
			}
			if name == "" {
				return command.UsageError(fmt.Errorf("--name is missing: %s", strings.Join(ogb.Names, ", ")))
			}
			if out == "" {
				out = filepath.Base(filepath.Clean(args[0])) + "-import"
			}
			progress := console.New(a.Err, log)
			stats, err := ogb.Import(cmd.Context(), ogb.Options{Dir: args[0], Name: name, Out: out, Progress: progress})
			progress.Done()
			if err != nil {
				return err
			}
			p := &command.Printer{Out: a.Out}
			p.Heading("%s: %s nodes, %s edges", name, console.Count(stats.Nodes), console.Count(stats.Edges))
			p.Line("split      train %s, valid %s, test %s", console.Count(stats.Train), console.Count(stats.Valid),
				console.Count(stats.Test))
			p.Line("no text    %s nodes", console.Count(stats.WithoutText))
			p.Line("no class   %s nodes", console.Count(stats.WithoutClass))
			if stats.UnknownTexts > 0 {
				p.Line("left out   %s texts of papers or products that are no nodes", console.Count(stats.UnknownTexts))
			}
			if stats.BadTexts > 0 {
				p.Line("not read   %s lines that are no text, the first one: %s", console.Count(stats.BadTexts),
					console.Plain(stats.FirstBad))
			}
			p.Line("")
			p.Line("Next: giantstream run --nodes %s --edges %s --store ./store --until-idle",
				filepath.Join(out, ogb.NodesFile), filepath.Join(out, ogb.EdgesFile))
			return p.Err
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "which data set: "+strings.Join(ogb.Names, ", "))
	cmd.Flags().StringVar(&out, "out", "", "folder to write to (default: DIR's name and -import)")
	return cmd
}
