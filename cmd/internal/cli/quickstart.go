package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/logview"
	"giantstream/cmd/internal/service"
	"giantstream/cmd/sample"
	"giantstream/config"
	"giantstream/ingest/backfill"
	"giantstream/sink"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
)

// quickstartReport is everything that the quickstart reports.
type quickstartReport struct {
	Dir string `json:"dir"`
	*runReport
	Committed committed            `json:"committed"`
	Nearest   []generation.Nearest `json:"nearest"`
	Live      *liveReport          `json:"live"`
	Seconds   float64              `json:"seconds"`
}

func quickstartCommand(a *command.App) *cobra.Command {
	var (
		dir     string
		encoder string
		asJSON  bool
	)
	cmd := &cobra.Command{
		Use:   "quickstart",
		Short: "Run everything on a sample graph: no server, account or download",
		Long: `Run the whole pipeline on the bundled sample graph, the public API of Go's
standard library: a broker inside this process, a local store, both input
topics, batches, generation 1, the sink topic. Then change a node's text and an
edge live, and see the embeddings arrive.`,
		Example: `  giantstream quickstart
  giantstream quickstart --dir /tmp/try --encoder linear`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, cfg, err := tryOut(cmd.Context(), a, dir, encoder)
			if err != nil {
				return err
			}
			if asJSON {
				return command.WriteJSON(a.Out, report)
			}
			return report.printQuickstart(a.Out, cfg)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "giantstream-quickstart", "`directory` that everything goes under")
	cmd.Flags().StringVar(&encoder, "encoder", "hybrid",
		fit.KindList(func(k fit.Kind) bool { return k.Trained() && !k.NeedsModel }))
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}

// tryOut is the quickstart.
func tryOut(ctx context.Context, a *command.App, dir, encoder string) (*quickstartReport, *config.Config, error) {
	begin := time.Now()
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := quickstartConfig(dir, encoder)
	if err != nil {
		return nil, nil, err
	}
	fmt.Fprintf(a.Err, "The sample graph: Go's standard library. Everything goes under %s\n\n", dir)
	nodes, edges, err := unpackSample(filepath.Join(dir, "sample"))
	if err != nil {
		return nil, nil, err
	}
	w, err := a.OpenWorkplace(ctx, cfg, "")
	if err != nil {
		return nil, nil, err
	}
	closeDevice, err := a.OpenDevice(w)
	if err != nil {
		return nil, nil, err
	}
	defer closeDevice()
	s, err := w.StartService(ctx, service.AllRoles())
	if err != nil {
		return nil, nil, err
	}
	report := &quickstartReport{Dir: dir}
	err = func() error {
		if report.runReport, err = drainAndPublish(ctx, s, cfg,
			backfill.Sources{Nodes: nodes, Edges: edges}, w.Progress); err != nil {
			return err
		}
		if report.Committed, err = countCommitted(ctx, w.Store, cfg.Shards); err != nil {
			return err
		}
		w.Progress.Stage("change a text and an edge, live", 0)
		if report.Live, err = changeLive(ctx, s, cfg); err != nil {
			return err
		}
		w.Progress.Stage("nearest neighbours", 0)
		source, err := logview.OpenCut(ctx, w.Store, cfg.Shards, report.Generation.Cut)
		if err != nil {
			return err
		}
		report.Nearest, err = s.Current().Nearest(ctx, source, shownNodes, 4)
		return err
	}()
	w.Progress.Done()
	if err := command.CloseService(s, err); err != nil {
		return nil, nil, err
	}
	report.Seconds = time.Since(begin).Seconds()
	return report, cfg, nil
}

// committed is what the commit log of a small store holds.
type committed struct {
	Windows int   `json:"windows"`
	Rows    int64 `json:"rows"`
	Bytes   int64 `json:"bytes"`
}

func countCommitted(ctx context.Context, store sink.Store, shards int) (c committed, err error) {
	for p := range shards {
		for m, err := range commitlog.Manifests(ctx, store, p, 0) {
			if err != nil {
				return c, err
			}
			c.Windows++
			c.Rows += m.Rows
			for _, o := range m.Objects {
				c.Bytes += o.Bytes
			}
		}
	}
	return c, nil
}

// shownNodes are examples for the table of nearest neighbours. Related declarations hardly share
// words with them.
var shownNodes = []string{"io.Reader", "bufio.Scanner", "hash.Hash", "io/fs.FS"}

// quickstartConfig places a pipeline with the defaults under dir.
func quickstartConfig(dir, encoder string) (*config.Config, error) {
	c := config.Default()
	cfg := &c
	cfg.Pipeline = "quickstart"
	cfg.Shards = 4
	cfg.HTTP.Listen = ""
	cfg.Train.Encoder = encoder
	cfg.Evaluate.HoldoutEdges = 0.1
	if err := command.PlaceAt(cfg, filepath.Join(dir, "store")); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "broker")); err == nil { // of an older version
		cfg.StateDir = filepath.Join(dir, "state")
		cfg.Kafka.DataDir = filepath.Join(dir, "broker")
	}
	return cfg, command.CheckConfig(cfg)
}

// sampleTime is the modification time of the unpacked files, and so the event time of their
// records: the same at every run.
var sampleTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// unpackSample writes the bundled files to a directory, for the backfill and for curious users.
func unpackSample(dir string) (nodes, edges []backfill.Input, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	files := sample.Files()
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		data, err := fs.ReadFile(files, e.Name())
		if err != nil {
			return nil, nil, err
		}
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		if err == nil && info.Size() == int64(len(data)) && info.ModTime().Equal(sampleTime) {
			continue
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return nil, nil, err
		}
		if err := os.Chtimes(path, sampleTime, sampleTime); err != nil {
			return nil, nil, err
		}
	}
	if nodes, err = backfill.Files(filepath.Join(dir, sample.NodesFile)); err != nil {
		return nil, nil, err
	}
	edges, err = backfill.Files(filepath.Join(dir, sample.EdgesFile))
	return nodes, edges, err
}

func (r *quickstartReport) printQuickstart(out io.Writer, cfg *config.Config) error {
	if err := r.print(out, cfg); err != nil {
		return err
	}
	p := &command.Printer{Out: out}
	c := r.Committed
	p.Line("committed     %d windows, %s rows, %s", c.Windows, console.Count(c.Rows), console.Bytes(c.Bytes))
	p.Heading("Nearest neighbours")
	w := tabwriter.NewWriter(p, 0, 0, 3, ' ', 0)
	for _, n := range r.Nearest {
		fmt.Fprintf(w, "%s\ttext only\tgraph-aware\n", n.ID)
		for i := range n.TextOnly {
			fmt.Fprintf(w, "\t%s\t%s\n", n.TextOnly[i], n.GraphAware[i])
		}
	}
	p.Keep(w.Flush())
	l := r.Live
	p.Heading("Live")
	p.Line("text of %s changed: its new embedding was on the sink topic after %s,", l.Node,
		command.Seconds(l.TextSeconds))
	p.Line("from generation %d, shard %d, manifest %d; cosine to the old one %.3f", r.Generation.Generation, l.Shard,
		l.Seq, l.Cosine)
	what := "removed"
	if !l.EdgeRemoved {
		what = "put back"
	}
	p.Line("edge to %s %s: rows of both ends committed and published after %s,",
		l.Neighbour, what, command.Seconds(l.EdgeSeconds))
	p.Line("labels %d → %d; the next generation learns from it", l.LabelsBefore, l.LabelsAfter)
	p.Heading("Try next (done in %s)", command.Seconds(r.Seconds))
	p.Line("giantstream inspect tree --store %s/store", r.Dir)
	p.Line("giantstream inspect node --store %s/store %s", r.Dir, l.Node)
	p.Line("giantstream quickstart --dir %s        # again: builds a generation on the changes", r.Dir)
	p.Line("giantstream run --nodes 'n/*.jsonl.gz' --edges 'e/*.jsonl.gz' --store ./out --until-idle")
	p.Line("giantstream config example > pipeline.yaml")
	return p.Err
}
