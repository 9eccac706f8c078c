package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/wiring"
	"giantstream/ingest/client"
	"giantstream/sink"
	"giantstream/stream/commitlog"
	"giantstream/stream/export"
)

// exportFlags say what is exported.
type exportFlags struct {
	command.PipelineFlags
	asOf, manifest, cut, from, generation, output string
	asJSON                                        bool
}

// Export is 'giantstream export'.
func Export(a *command.App) *cobra.Command {
	var flags exportFlags
	cmd := &cobra.Command{
		Use:   "export (--as-of TIME | --manifest N | --cut FILE) -o PLACE",
		Short: "Rows and embeddings as they were at an event time or at a manifest",
		Long: `Write rows and embeddings as they were at a point, deleted nodes included, as Parquet:
for training that must not see what came later, or to look at the past.

--as-of TIME is an event time: what the records with an event time up to TIME state,
and nothing else, in whatever order they came. The topics are read from their first
records and must hold all of them; with an embedded broker, stop the pipeline first.
--from log takes the newest committed row of each node that says nothing later than
TIME instead. It needs no topic, but nodes that changed after TIME may be older than
they should; their number is printed.

--manifest N, or 0=N,1=M,… for several shards, and --cut FILE are what had been
committed. FILE is a generation.json, an export.json, or {"0": 17, "1": 12}. With
--as-of they bound the records by what these manifests had consumed.

Embeddings, features and targets are made with the newest generation that has seen
nothing beyond the point. --generation N takes another, and none leaves them out:
a store that was filled from files at once has no generation of an earlier time.

An export is complete once it has export.json. One that was interrupted is begun
again by the same command.`,
		Example: `  giantstream export -c pipeline.yaml --as-of 2026-03-01 -o ./march
  giantstream export --store ./out --as-of 2026-03-01 --generation none -o ./texts
  giantstream export -c pipeline.yaml --as-of 2026-03-01T12:00:00Z --from log -o s3://bucket/march
  giantstream export -c pipeline.yaml --manifest 0=17,1=12 --generation none -o ./rows
  giantstream export --store ./out --cut ./out/generations/000002/generation.json -o ./second`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := flags.options()
			if err != nil {
				return command.UsageError(err)
			}
			return runExport(cmd.Context(), a, &flags, o)
		},
	}
	flags.Register(cmd)
	command.BeginsAnew(cmd)
	f := cmd.Flags()
	f.StringVar(&flags.asOf, "as-of", "", "event `TIME`, as 2026-03-01T12:00:00Z or 2026-03-01 (midnight, UTC)")
	f.StringVar(&flags.manifest, "manifest", "", "the newest manifest that counts, `N` or SHARD=N,…")
	f.StringVar(&flags.cut, "cut", "", "JSON `FILE` with the newest manifest of each shard")
	f.StringVar(&flags.from, "from", "", "what --as-of reads: topics or log (default: topics)")
	f.StringVar(&flags.generation, "generation", "", "`N`, or none (default: the newest that fits)")
	f.StringVarP(&flags.output, "output", "o", "", "where the export goes: an empty directory, or s3://bucket/prefix")
	f.BoolVar(&flags.asJSON, "json", false, "print export.json")
	return cmd
}

// options returns what the flags say apart from the cut, which depends on the store.
func (f *exportFlags) options() (o export.Options, err error) {
	switch {
	case f.output == "":
		return o, errors.New("where to? Give -o DIR or -o s3://bucket/prefix")
	case f.asOf == "" && f.manifest == "" && f.cut == "":
		return o, errors.New("as of what? Give --as-of TIME, --manifest N or --cut FILE")
	case f.manifest != "" && f.cut != "":
		return o, errors.New("--manifest and --cut name the same thing: give one of them")
	}
	if f.asOf != "" {
		if o.AsOf, err = time.Parse(time.RFC3339Nano, f.asOf); err != nil {
			if o.AsOf, err = time.Parse(time.DateOnly, f.asOf); err != nil {
				return o, fmt.Errorf("--as-of %q is no time: write it as 2026-03-01T12:00:00Z or 2026-03-01", f.asOf)
			}
		}
	}
	switch o.From = export.From(f.from); {
	case o.From != "" && o.From != export.FromTopics && o.From != export.FromLog:
		return o, fmt.Errorf("--from %q: use topics or log", f.from)
	case o.From != "" && f.asOf == "":
		return o, errors.New("--from says what --as-of reads; a manifest is always read from the log")
	}
	switch f.generation {
	case "":
		o.Generation = export.Fitting
	case "none":
		o.Generation = export.NoGeneration
	default:
		o.Generation, err = command.ParseGeneration(f.generation)
	}
	return o, err
}

func runExport(ctx context.Context, a *command.App, flags *exportFlags, o export.Options) (err error) {
	pipe, err := a.Open(ctx, &flags.PipelineFlags)
	if err != nil {
		return err
	}
	if o.Cut, err = flags.cutOf(pipe.Identity.Shards); err != nil {
		return command.UsageError(err)
	}
	if o.Into, err = openInto(ctx, pipe, flags.output); err != nil {
		return err
	}
	closeDevice, err := a.OpenDevice(pipe.Workplace)
	if err != nil {
		return err
	}
	defer closeDevice()
	if !o.AsOf.IsZero() && o.From != export.FromLog {
		var detach func() error
		if o.Topics, detach, err = openTopics(ctx, pipe); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, detach()) }()
	}
	o.Store, o.Generations = pipe.Store, wiring.Generations{Store: pipe.Store, Device: pipe.Device}
	o.Progress, o.Log = pipe.Progress, pipe.Log
	doc, err := export.Run(ctx, o)
	pipe.Progress.Done()
	if err != nil {
		return err
	}
	if flags.asJSON {
		return command.WriteJSON(a.Out, doc)
	}
	return printExport(a, doc, o.Into)
}

// openTopics opens the topics that an export by event time reads.
func openTopics(ctx context.Context, pipe *command.Pipeline) (t export.Topics, detach func() error, err error) {
	if err := pipe.KnowsMapping(); err != nil {
		return t, nil, err
	}
	in, detach, err := wiring.OpenSource(ctx, pipe.Config, pipe.Identity.Inputs, pipe.Log)
	if err != nil {
		return t, nil, err
	}
	t = export.Topics{Inputs: in.Feed.Topics.Given(), Source: in,
		Undirected: pipe.Config.Ingest.Undirected, Partition: client.Partition}
	if err := uncompacted(ctx, in, t.Inputs); err != nil {
		return t, nil, errors.Join(err, detach())
	}
	return t, detach, nil
}

// uncompacted returns export.ErrTopics for a topic whose older records compaction removes.
func uncompacted(ctx context.Context, c wiring.Source, topics []string) error {
	gone, err := compacted(ctx, c, topics)
	if err != nil || len(gone) == 0 {
		return err
	}
	return fmt.Errorf("%w: topic %s is compacted, so that of what a key said only the last is sure to be "+
		"there. With cleanup.policy=delete and retention.ms=-1 it would keep all; --from log exports what "+
		"the commit log knows", export.ErrTopics, gone[0])
}

// compacted returns the topics whose older records compaction removes. Where brokers do not tell their settings, the
// topics are taken for what the pipeline's start has checked.
func compacted(ctx context.Context, c wiring.Source, topics []string) (gone []string, err error) {
	have, err := c.Settings(ctx, topics...)
	if err != nil {
		return nil, ctx.Err()
	}
	for _, topic := range topics {
		if have[topic].Compact {
			gone = append(gone, topic)
		}
	}
	return gone, nil
}

// openInto opens the place of an export.
func openInto(ctx context.Context, pipe *command.Pipeline, place string) (sink.Store, error) {
	at := *pipe.Config
	at.Store = place
	into, err := wiring.OpenStore(ctx, &at)
	if err != nil {
		return nil, err
	}
	if in, of := into.URL()+"/", pipe.Store.URL()+"/"; strings.HasPrefix(in, of) || strings.HasPrefix(of, in) {
		return nil, command.UsageError(fmt.Errorf("%s and the store %s lie within each other: export to another place",
			into.URL(), pipe.Store.URL()))
	}
	return into, nil
}

// cutOf returns the cut that the flags name, nil for none.
func (f *exportFlags) cutOf(shards int) (commitlog.Cut, error) {
	cut := commitlog.Cut{}
	switch {
	case f.manifest != "":
		if !strings.Contains(f.manifest, "=") && shards == 1 {
			f.manifest = "0=" + f.manifest
		}
		for item := range strings.SplitSeq(f.manifest, ",") {
			shard, seq, ok := strings.Cut(item, "=")
			p, perr := strconv.Atoi(strings.TrimSpace(shard))
			n, nerr := strconv.ParseInt(strings.TrimSpace(seq), 10, 64)
			if !ok || perr != nil || nerr != nil {
				return nil, fmt.Errorf("--manifest %q: name the newest manifest of each of the %d shards, as in "+
					"0=17,1=12",
					f.manifest, shards)
			}
			cut[p] = n
		}
	case f.cut != "":
		data, err := os.ReadFile(f.cut)
		if err != nil {
			return nil, err
		}
		var doc struct{ Cut commitlog.Cut }
		if err := json.Unmarshal(data, &doc); err != nil || doc.Cut == nil {
			if err := json.Unmarshal(data, &cut); err != nil {
				return nil, fmt.Errorf("%s: neither a document with a cut nor an object of shards and manifests: %w",
					f.cut,
					err)
			}
		} else {
			cut = doc.Cut
		}
	default:
		return nil, nil
	}
	for p := range shards {
		if n, ok := cut[p]; !ok || n < 0 || len(cut) != shards {
			return nil, fmt.Errorf("a cut names the newest manifest (0 for none) of each of the %d shards, this one "+
				"has %s",
				shards, named(cut))
		}
	}
	return cut, nil
}

func named(cut commitlog.Cut) string {
	data, err := json.Marshal(cut)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func printExport(a *command.App, d *export.Doc, into sink.Store) error {
	p := &command.Printer{Out: a.Out}
	p.Line("%s has %s, %s and %s", into.URL(), command.Plural(d.Nodes, "node"), command.Plural(d.Links, "link"),
		command.Plural(d.Deleted, "deleted node"))
	if d.AsOf != nil {
		p.Line("  as of %s, from the %s", d.AsOf.Format(time.RFC3339Nano), d.From)
	}
	if d.AsOf != nil && (d.Nodes+d.Deleted == 0 || d.Links == 0) {
		missing := "links: no edge"
		if d.Nodes+d.Deleted == 0 {
			missing = "nodes: none"
		}
		p.Line("  no %s in the %s has an event time up to then. Records of files have the files' modification time, "+
			"unless the mapping names an event time", missing, d.From)
	}
	p.Line("  manifests %s; graph %s", export.List(d.Cut), d.Hash)
	if d.Generation > 0 {
		p.Line("  embeddings, features and targets of generation %d, space %d", d.Generation, d.Space)
	}
	if d.Uncertain > 0 {
		p.Line("  %s changed later and may be older than at that time: --from topics is exact",
			command.Plural(d.Uncertain, "node"))
	}
	if d.Refused > 0 {
		p.Line("  %s of the topics are dead letters", command.Plural(d.Refused, "record"))
	}
	return p.Err
}
