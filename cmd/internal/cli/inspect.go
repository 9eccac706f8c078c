package cli

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/console"
	"giantstream/ingest/client"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
)

func (a *app) inspect() *cobra.Command {
	cmd := &cobra.Command{Use: "inspect", Short: "Look into batches, a generation, its tree, embeddings, one node",
		Example: "  giantstream inspect tree --store ./out\n  giantstream inspect node --store ./out ID"}
	cmd.AddCommand(a.inspectBatches(), a.inspectGeneration(), a.inspectTree(), a.inspectEmbeddings(), a.inspectNode())
	return cmd
}

// generationCommand completes a command about one generation, which --generation chooses. look does
// the command's work.
func (a *app) generationCommand(cmd *cobra.Command,
	look func(context.Context, *pipeline, *generation.Doc) error) *cobra.Command {
	var (
		flags  pipelineFlags
		number int64
	)
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		pipe, err := a.open(cmd.Context(), &flags)
		if err != nil {
			return err
		}
		doc, err := findGeneration(cmd.Context(), pipe.store, number)
		if err != nil {
			return err
		}
		return look(cmd.Context(), pipe, doc)
	}
	flags.register(cmd)
	cmd.Flags().Int64VarP(&number, "generation", "g", 0, "generation `number` (default: the newest that is ready)")
	return cmd
}

// findGeneration returns a generation by number, for 0 the newest ready one.
func findGeneration(ctx context.Context, store sink.Store, number int64) (*generation.Doc, error) {
	if number > 0 {
		doc, err := generation.Load(ctx, store, number)
		if errors.Is(err, generation.ErrNone) {
			have, listErr := generation.Numbers(ctx, store)
			return nil, errors.Join(fmt.Errorf("there is no generation %d; the store has %v", number, have), listErr)
		}
		return doc, err
	}
	doc, err := generation.Current(ctx, store)
	if errors.Is(err, generation.ErrNone) {
		return nil, fmt.Errorf("%s has no finished generation yet: 'giantstream run --until-idle' makes one",
			store.URL())
	}
	return doc, err
}

func (a *app) inspectBatches() *cobra.Command {
	var (
		flags  pipelineFlags
		shard  int
		last   int
		asJSON bool
	)
	cmd := &cobra.Command{
		Use: "batches", Short: "List the newest committed windows and their Parquet objects",
		Example: "  giantstream inspect batches --store ./out --shard 0 --last 5", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			pipe, err := a.open(ctx, &flags)
			if err != nil {
				return err
			}
			store := pipe.store
			manifests := []*commitlog.Manifest{} // for JSON
			w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "SHARD\tMANIFEST\tCOMMITTED\tGENERATION\tROWS\tBYTES\tOBJECT")
			for p := range pipe.id.Shards {
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
				return writeJSON(a.out, manifests)
			}
			return w.Flush()
		},
	}
	flags.register(cmd)
	cmd.Flags().IntVar(&shard, "shard", -1, "only this shard")
	cmd.Flags().IntVar(&last, "last", 3, "windows per shard")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the manifests as JSON")
	return cmd
}

func (a *app) inspectGeneration() *cobra.Command {
	var asJSON bool
	cmd := a.generationCommand(&cobra.Command{
		Use: "generation", Short: "Show a generation's graph, tree, encoder and evaluation",
		Example: "  giantstream inspect generation --store ./out --json | jq .evaluation",
	}, func(_ context.Context, pipe *pipeline, doc *generation.Doc) error {
		if asJSON {
			return writeJSON(a.out, doc)
		}
		p := &printer{out: a.out}
		p.heading("Generation %d (%s), graph %s", doc.Generation, doc.Status, doc.GraphHash)
		printGraph(p, doc)
		printTree(p, doc)
		printMapping(p, doc)
		printOverlap(p, doc)
		p.line("")
		printEvaluation(p, doc)
		printGate(p, doc)
		p.line("")
		printPlaces(p, pipe.cfg, doc)
		return p.err
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print generation.json")
	return cmd
}

func (a *app) inspectTree() *cobra.Command {
	var (
		opts   generation.OutlineOptions
		asJSON bool
	)
	cmd := a.generationCommand(&cobra.Command{
		Use: "tree", Short: "Print the label tree with the terms that set each cluster apart",
		Long: `Print the clusters of a generation's label tree, level.cluster, with their
number of labels and the terms that set their texts apart from their parent's.`,

		Example: "  giantstream inspect tree --store ./out --levels 2 --terms 6",
	}, func(ctx context.Context, pipe *pipeline, doc *generation.Doc) error {
		clusters, err := generation.OutlineTree(ctx, pipe.store, doc, opts)
		if err != nil {
			return err
		}
		if asJSON {
			return writeJSON(a.out, treeView{doc.Generation, clusters})
		}
		p := &printer{out: a.out}
		printOutline(p, clusters)
		return p.err
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().IntVar(&opts.Levels, "levels", 2, "levels to print, from the coarsest")
	cmd.Flags().IntVar(&opts.Terms, "terms", 8, "terms per cluster")
	return cmd
}

func (a *app) inspectEmbeddings() *cobra.Command {
	var asJSON bool
	cmd := a.generationCommand(&cobra.Command{
		Use: "embeddings", Short: "List a generation's embedding files",
		Example: "  giantstream inspect embeddings --store ./out",
	}, func(_ context.Context, _ *pipeline, doc *generation.Doc) error {
		if asJSON {
			return writeJSON(a.out, doc.Embeddings)
		}
		w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "SHARD\tROWS\tBYTES\tOBJECT")
		for _, e := range doc.Embeddings {
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", e.Shard, console.Count(e.Rows), console.Bytes(e.Bytes), e.Key)
		}
		return w.Flush()
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// nodeView is everything that the store has about one node.
type nodeView struct {
	Shard     int               `json:"shard"`
	Row       *rows.Row         `json:"row,omitempty"`
	Seq       int64             `json:"seq,omitempty"`
	Embedding *embedding.Record `json:"embedding,omitempty"`
	// Cut names the lists that are shown in part.
	Cut []string `json:"cut,omitempty"`
}

func (a *app) inspectNode() *cobra.Command {
	var (
		flags pipelineFlags
		full  bool
	)
	cmd := &cobra.Command{
		Use: "node ID", Short: "Show one node: its newest row and its embedding, as JSON",
		Example: "  giantstream inspect node --store ./out net/http.Client", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pipe, err := a.open(cmd.Context(), &flags)
			if err != nil {
				return err
			}
			view, err := findNode(cmd.Context(), pipe.store, pipe.id.Shards, args[0])
			if err != nil {
				return err
			}
			if !full {
				view.shorten()
			}
			return writeJSON(a.out, view)
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&full, "full", false, "print all features, targets, labels and numbers of the vector")
	return cmd
}

// maxListed is how many elements of a list are shown of a node.
const maxListed = 8

// maxText is how many characters of its text are.
const maxText = 2000

// shorten cuts the long lists of a node, and says how long they are.
func (v *nodeView) shorten() {
	cut := func(name string, n int) {
		if n > maxListed {
			v.Cut = append(v.Cut, fmt.Sprintf("%s: the first %d of %d (--full shows all)", name, maxListed, n))
		}
	}
	if r := v.Row; r != nil {
		cut("labels", len(r.Labels))
		r.Labels = r.Labels[:min(len(r.Labels), maxListed)]
		cut("features", len(r.FeatureIndices))
		r.FeatureIndices = r.FeatureIndices[:min(len(r.FeatureIndices), maxListed)]
		r.FeatureValues = r.FeatureValues[:min(len(r.FeatureValues), maxListed)]
		for i, level := range r.Targets {
			cut(fmt.Sprintf("targets of level %d", i), len(level))
			r.Targets[i] = level[:min(len(level), maxListed)]
		}
		for i, level := range r.TargetCounts {
			r.TargetCounts[i] = level[:min(len(level), maxListed)]
		}
		if text := []rune(r.Text); len(text) > maxText {
			v.Cut = append(v.Cut, fmt.Sprintf("text: the first %d of %d characters (--full shows all)", maxText,
				len(text)))
			r.Text = string(text[:maxText])
		}
	}
	if e := v.Embedding; e != nil {
		cut("vector", len(e.Vector))
		e.Vector = e.Vector[:min(len(e.Vector), maxListed)]
	}
}

func findNode(ctx context.Context, store sink.Store, shards int, id string) (*nodeView, error) {
	v := &nodeView{Shard: client.Partition([]byte(id), shards)}
	cut, err := commitlog.CurrentCut(ctx, store, shards)
	if err != nil {
		return nil, err
	}
	for r, err := range cut.Newest(ctx, store, v.Shard) {
		if err != nil {
			return nil, err
		}
		if r.NodeID == id {
			v.Row, v.Seq = &r.Row, r.Seq
			break
		}
	}
	if v.Row == nil {
		return nil, fmt.Errorf("node %q has no committed row in shard %d; ids are compared byte by byte", id, v.Shard)
	}
	doc, err := generation.Current(ctx, store)
	if errors.Is(err, generation.ErrNone) {
		return v, nil
	}
	if err != nil {
		return nil, err
	}
	for _, part := range doc.Embeddings {
		if part.Shard != v.Shard {
			continue
		}
		for r, err := range embedding.ReadParquet(ctx, store, part.Ref()) {
			if err != nil {
				return nil, err
			}
			if r.NodeID == id {
				v.Embedding = &r
				return v, nil
			}
		}
	}
	return v, nil
}
