package cli

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/featurize/pairs"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
)

func inspectCommand(a *command.App) *cobra.Command {
	cmd := &cobra.Command{Use: "inspect", Short: "Look into batches, a generation, its tree, embeddings, one node",
		Example: "  giantstream inspect tree --store ./out\n  giantstream inspect node --store ./out ID"}
	cmd.AddCommand(inspectBatches(a), inspectGeneration(a), inspectTree(a), inspectEmbeddings(a), inspectNode(a))
	return cmd
}

func inspectBatches(a *command.App) *cobra.Command {
	var (
		flags  command.PipelineFlags
		shard  int
		last   int
		asJSON bool
	)
	cmd := &cobra.Command{
		Use: "batches", Short: "List the newest committed windows and their Parquet objects",
		Example: "  giantstream inspect batches --store ./out --shard 0 --last 5", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			pipe, err := a.Open(ctx, &flags)
			if err != nil {
				return err
			}
			store := pipe.Store
			manifests := []*commitlog.Manifest{} // for JSON
			w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "SHARD\tMANIFEST\tCOMMITTED\tGENERATION\tROWS\tBYTES\tOBJECT")
			for p := range pipe.Identity.Shards {
				if shard >= 0 && p != shard {
					continue
				}
				head, err := commitlog.Head(ctx, store, p)
				if err != nil {
					return err
				}
				if head == nil {
					continue
				}
				for m, err := range commitlog.Manifests(ctx, store, p, max(0, head.Seq-int64(last))) {
					if err != nil {
						return err
					}
					if asJSON {
						manifests = append(manifests, m)
						continue
					}
					at := m.Created.UTC().Format(time.DateTime)
					if len(m.Objects) == 0 {
						fmt.Fprintf(w, "%d\t%d\t%s\t%d\t0\t-\t(offsets only)\n", p, m.Seq, at, m.Generation)
					}
					for _, o := range m.Objects {
						fmt.Fprintf(w, "%d\t%d\t%s\t%d\t%s\t%s\t%s\n",
							p, m.Seq, at, m.Generation,
							console.Count(o.Rows), console.Bytes(o.Bytes), o.Key)
					}
				}
			}
			if asJSON {
				return command.WriteJSON(a.Out, manifests)
			}
			return w.Flush()
		},
	}
	flags.Register(cmd)
	cmd.Flags().IntVar(&shard, "shard", -1, "only this shard")
	cmd.Flags().IntVar(&last, "last", 3, "windows per shard")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the manifests as JSON")
	return cmd
}

func inspectGeneration(a *command.App) *cobra.Command {
	var asJSON bool
	cmd := a.AboutGeneration(&cobra.Command{
		Use: "generation", Short: "Show a generation's graph, tree, encoder and evaluation",
		Example: "  giantstream inspect generation --store ./out --json | jq .evaluation",
	}, func(_ context.Context, pipe *command.Pipeline, doc *generation.Doc) error {
		if asJSON {
			return command.WriteJSON(a.Out, doc)
		}
		p := &command.Printer{Out: a.Out}
		p.Heading("Generation %d (%s), graph %s", doc.Generation, doc.Status, doc.GraphHash)
		printGraph(p, doc)
		printTree(p, doc)
		printMapping(p, doc)
		printOverlap(p, doc)
		p.Line("")
		printEvaluation(p, doc)
		printGate(p, doc)
		p.Line("")
		printPlaces(p, pipe.Config, doc)
		return p.Err
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print generation.json")
	return cmd
}

func inspectTree(a *command.App) *cobra.Command {
	var (
		opts   generation.OutlineOptions
		asJSON bool
	)
	cmd := a.AboutGeneration(&cobra.Command{
		Use: "tree", Short: "Print the label tree with the terms that set each cluster apart",
		Long: `Print the clusters of a generation's label tree, level.cluster, with their
number of labels and the terms that set their texts apart from their parent's.`,

		Example: "  giantstream inspect tree --store ./out --levels 2 --terms 6",
	}, func(ctx context.Context, pipe *command.Pipeline, doc *generation.Doc) error {
		clusters, err := generation.OutlineTree(ctx, pipe.Store, doc, opts)
		if err != nil {
			return err
		}
		if asJSON {
			return command.WriteJSON(a.Out, treeView{doc.Generation, clusters})
		}
		p := &command.Printer{Out: a.Out}
		printOutline(p, clusters)
		return p.Err
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().IntVar(&opts.Levels, "levels", 2, "levels to print, from the coarsest")
	cmd.Flags().IntVar(&opts.Terms, "terms", 8, "terms per cluster")
	return cmd
}

func inspectEmbeddings(a *command.App) *cobra.Command {
	var asJSON bool
	cmd := a.AboutGeneration(&cobra.Command{
		Use: "embeddings", Short: "List a generation's embedding files",
		Example: "  giantstream inspect embeddings --store ./out",
	}, func(_ context.Context, _ *command.Pipeline, doc *generation.Doc) error {
		if asJSON {
			return command.WriteJSON(a.Out, doc.Embeddings)
		}
		w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "SHARD\tROWS\tBYTES\tOBJECT")
		for _, e := range doc.Embeddings {
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", e.Shard, console.Count(e.Rows), console.Bytes(e.Bytes), e.Key)
		}
		return w.Flush()
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func inspectNode(a *command.App) *cobra.Command {
	var (
		flags command.PipelineFlags
		full  bool
	)
	cmd := &cobra.Command{
		Use: "node ID", Short: "Show one node: its newest row, its embedding and what it is ordered with, as JSON",
		Example: "  giantstream inspect node --store ./out net/http.Client", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pipe, err := a.Open(cmd.Context(), &flags)
			if err != nil {
				return err
			}
			view, err := command.FindNode(cmd.Context(), pipe.Store, pipe.Identity.Shards, args[0])
			if err != nil {
				return err
			}
			rule := pairs.Rule{Measure: pairs.Measure(pipe.Config.Links.FromOrders.Measure), MinSupport: 1}
			view.Ordered, err = command.FindOrdered(cmd.Context(), pipe.Store, pipe.Identity.Shards, args[0], rule)
			if err != nil {
				return err
			}
			view.Vectors, err = command.FindVectors(cmd.Context(), pipe.Store, pipe.Identity.Shards, args[0])
			if err != nil {
				return err
			}
			if !full {
				view.Shorten()
			}
			return command.WriteJSON(a.Out, view)
		},
	}
	flags.Register(cmd)
	cmd.Flags().BoolVar(&full, "full", false, "print all features, targets, labels and numbers of the vector")
	return cmd
}
