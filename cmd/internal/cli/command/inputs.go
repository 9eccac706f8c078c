package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/profiles"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/backfill"
	"giantstream/ingest/preview"
)

// InputFlags name the input files and map their fields.
type InputFlags struct {
	Nodes, Edges []string
	// Attributes are TOPIC=GLOB.
	Attributes []string

	// Orders are files of the topic of orders.
	Orders []string
	order  orderFlags

	attributes, vectors                     []string // of nodes
	id, class, src, dst, eventTime, deleted string
	nodesEventTime, edgesEventTime          string
	edgeWeight, edgeKind                    string
	edgeTopics                              []string
	text                                    []string
	directed, stripHTML                     bool

	snapshot, snapshotEdges bool
	snapshotGuard           float64
	guardGiven              func() bool // nil for a command without snapshots

	// profile is nil without one.
	profile        *profiles.Profile
	read           backfill.ReadOptions
	allowUnmatched bool
}

// oldClassFlag is what --class was called. It stays accepted, with a hint.
const oldClassFlag = "label"

// Register adds the flags to a command.
func (f *InputFlags) Register(c *cobra.Command) {
	fl := c.Flags()
	fl.StringArrayVar(&f.Nodes, "nodes", nil,
		"files with nodes: `GLOB` of .jsonl, .json, .csv, .tsv or .parquet, also .gz and .zst, or s3://bucket/glob; "+
			"no directories (repeatable)")
	fl.StringArrayVar(&f.Edges, "edges", nil,
		"files with edges: `GLOB`, as --nodes, or TOPIC=GLOB for one of --edge-topic (repeatable)")
	fl.StringArrayVar(&f.Attributes, "attributes", nil,
		"files with attributes or vectors of nodes alone: `TOPIC=GLOB`, a topic of ingest.attributes (repeatable)")
	fl.StringArrayVar(&f.attributes, "attribute", nil, "field that is carried beside the text and not embedded: "+
		"`NAME[:TYPE][=FIELD]`, with the type string, number, decimal-comma, boolean, time or strings (repeatable)")
	fl.StringArrayVar(&f.vectors, "vector", nil, "field with numbers that a model has made of the node: "+
		"`NAME=FIELD:LENGTH[:float16]` (repeatable)")
	fl.StringVar(&f.id, "id", "", "field with the node's id (default id)")
	fl.StringArrayVar(&f.text, "text", nil, "field with the node's text; repeat to join several (default text)")
	fl.BoolVar(&f.stripHTML, "strip-html", false, "drop HTML tags, comments, scripts and styles from the texts")
	fl.StringVar(&f.class, "class", "", "field with the node's class, for evaluation (default label)")
	fl.StringVar(&f.class, oldClassFlag, "", "")
	_ = fl.MarkHidden(oldClassFlag) // it exists
	fl.StringVar(&f.src, "src", "", "field with an edge's source id (default src)")
	fl.StringVar(&f.dst, "dst", "", "field with its destination, or destinations: also_bought[*] (default dst)")
	fl.StringVar(&f.edgeWeight, "edge-weight", "", "field with an edge's weight, a number, 0 or more (default: none)")
	fl.StringVar(&f.edgeKind, "edge-kind", "",
		"field with an edge's kind, or a constant in double quotes: '\"also_bought\"' (default: none)")
	fl.StringArrayVar(&f.edgeTopics, "edge-topic", nil, "further input of edges, which are all of one kind: "+
		"`TOPIC/KIND[=SRC,DST]` (repeatable)")
	fl.StringVar(&f.eventTime, "event-time", "",
		"field with the time of the change, in all inputs (default: the file's modification time)")
	fl.StringVar(&f.nodesEventTime, "nodes-event-time", "", "the same for nodes alone")
	fl.StringVar(&f.edgesEventTime, "edges-event-time", "", "the same for edges alone")
	fl.StringVar(&f.deleted, "deleted", "",
		"which records delete their node or edge: a field that is true, or conditions such as "+
			"'status in [draft, archived]' or 'online == 2' (default deleted)")
	fl.StringVar(&f.read.ListSeparator, "list-separator", "",
		"what separates the elements in CSV cells with lists: of --dst and of fields with [*] (JSON lists need none)")
	fl.BoolVar(&f.read.SkipWithoutText, "skip-without-text", false,
		"leave out node records without text, such as the further rows of a product in Shopify's exports")
	fl.BoolVar(&f.allowUnmatched, "allow-unmatched", false,
		"go on although the first records do not fit the mapping")
	fl.BoolVar(&f.directed, "directed", false, "edges have a direction: only destinations are labels")
}

// RegisterSnapshot adds the flags of a command that sends files which may be full exports.
func (f *InputFlags) RegisterSnapshot(c *cobra.Command) {
	fl := c.Flags()
	fl.BoolVar(&f.snapshot, "snapshot", false,
		"the files of --nodes are a full export: delete the nodes that the pipeline has committed and they lack")
	fl.BoolVar(&f.snapshotEdges, "snapshot-edges", false, "the same for the edges and the files of --edges")
	fl.Float64Var(&f.snapshotGuard, "snapshot-guard", 0,
		"send nothing if a full export lacks more than this `share` of the nodes or edges (default 0.1)")
	f.guardGiven = func() bool { return fl.Changed("snapshot-guard") }
}

// Apply sets the fields of the configuration that flags were given for.
func (f *InputFlags) Apply(cfg *config.Config) {
	set := func(field *string, v string) {
		if v != "" {
			*field = v
		}
	}
	in := &cfg.Ingest
	set(&in.Nodes.ID, f.id)
	set(&in.Nodes.Class, f.class)
	set(&in.Edges.Src, f.src)
	set(&in.Edges.Dst, f.dst)
	set(&in.Edges.Weight, f.edgeWeight)
	set(&in.Edges.Kind, f.edgeKind)
	set(&in.Nodes.EventTime, cmp.Or(f.nodesEventTime, f.eventTime))
	set(&in.Edges.EventTime, cmp.Or(f.edgesEventTime, f.eventTime))
	set(&in.Nodes.Deleted, f.deleted)
	set(&in.Edges.Deleted, f.deleted)
	if len(f.edgeTopics) > 0 {
		in.Edges.Topics = f.edgeTopics
	}
	if len(f.text) > 0 {
		in.Nodes.Text = f.text
	}
	if len(f.attributes) > 0 {
		in.Nodes.Attributes = f.attributes
	}
	if len(f.vectors) > 0 {
		in.Nodes.Vectors = f.vectors
	}
	f.applyOrders(&in.Baskets)
	if f.directed {
		in.Undirected = false
	}
	if f.stripHTML {
		in.Nodes.StripHTML = true
	}
	in.Nodes.Snapshot = in.Nodes.Snapshot || f.snapshot
	in.Edges.Snapshot = in.Edges.Snapshot || f.snapshotEdges
	if f.guardGiven != nil && f.guardGiven() {
		in.SnapshotGuard = f.snapshotGuard
	}
}

// UseProfile reads files as a profile says, where no flag says another.
func (f *InputFlags) UseProfile(profile string) error {
	if profile == "" {
		return nil
	}
	p, err := profiles.Find(profile)
	if err != nil {
		return UsageError(fmt.Errorf("--profile: %w", err))
	}
	f.profile = p
	f.read.ListSeparator = cmp.Or(f.read.ListSeparator, p.Read.ListSeparator)
	f.read.SkipWithoutText = f.read.SkipWithoutText || p.Read.SkipWithoutText
	return nil
}

// PreviewOptions returns the options of a preview. What a profile maps, an export may lack.
func (f *InputFlags) PreviewOptions(cfg *config.Config, records int64, rows int) preview.Options {
	o := wiring.PreviewOf(cfg, records, rows)
	if f.profile != nil {
		o.Expected = slices.DeleteFunc(o.Expected, func(field string) bool { return f.profile.Gives(cfg, field) })
	}
	return o
}

// Given says whether any file is named.
func (f *InputFlags) Given() bool {
	return len(f.Nodes)+len(f.Edges)+len(f.Attributes)+len(f.Orders) > 0
}

// OfFiles returns which flags were given that say how files are read: of no use where no file is named.
func OfFiles(c *cobra.Command) (given []string) {
	own := &cobra.Command{}
	new(InputFlags).Register(own)
	own.Flags().VisitAll(func(flag *pflag.Flag) {
		if c.Flags().Changed(flag.Name) {
			given = append(given, "--"+flag.Name)
		}
	})
	return given
}

// StaleWarning says which of the records that were sent lose to earlier ones; "" if none is known to.
func StaleWarning(s *backfill.Stats) string {
	if s.Stale == 0 {
		return ""
	}
	return fmt.Sprintf("%s of them change nothing that the earlier version of their file said: the file is older than "+
		"that version, and its time is their event time; touch it and run again to make it win: %s",
		console.Count(s.Stale), console.Plain(strings.Join(s.StaleFiles, ", ")))
}

// Open finds the input files.
func (f *InputFlags) Open(ctx context.Context, cfg *config.Config) (files backfill.Sources, err error) {
	if f.snapshot && len(f.Nodes) == 0 || f.snapshotEdges && len(f.Edges) == 0 {
		return files, UsageError(errors.New("--snapshot needs --nodes, and --snapshot-edges needs --edges"))
	}
	if files.Nodes, err = f.open(ctx, cfg, f.Nodes...); err != nil {
		return files, UsageError(fmt.Errorf("--nodes: %w", err))
	}
	topics := wiring.TopicsOf(cfg)
	for _, given := range f.Edges {
		topic, glob, _ := strings.Cut(given, "=")
		topic = wiring.ReadTopic(cfg, topic)
		oneKind := slices.Contains(topics.OneKind, topic)
		if !oneKind {
			glob = given
		}
		found, err := f.open(ctx, cfg, glob)
		switch {
		case err != nil:
			return files, UsageError(fmt.Errorf("--edges: %w", err))
		case !oneKind:
			files.Edges = append(files.Edges, found...)
		case files.EdgeTopics == nil:
			files.EdgeTopics = map[string][]backfill.Input{topic: found}
		default:
			files.EdgeTopics[topic] = append(files.EdgeTopics[topic], found...)
		}
	}
	for _, given := range f.Attributes {
		topic, glob, _ := strings.Cut(given, "=")
		read := wiring.ReadTopic(cfg, topic)
		if !slices.Contains(topics.Further, read) || read == topics.Orders || slices.Contains(topics.OneKind, read) {
			return files, UsageError(fmt.Errorf("--attributes: %q is no topic of ingest.attributes; write TOPIC=GLOB",
				topic))
		}
		found, err := f.open(ctx, cfg, glob)
		if err != nil {
			return files, UsageError(fmt.Errorf("--attributes: %w", err))
		}
		if files.Attributes == nil {
			files.Attributes = map[string][]backfill.Input{}
		}
		files.Attributes[read] = append(files.Attributes[read], found...)
	}
	if len(f.Orders) > 0 {
		found, err := f.open(ctx, cfg, f.Orders...)
		if err != nil {
			return files, UsageError(fmt.Errorf("--orders: %w", err))
		}
		files.Orders = map[string][]backfill.Input{topics.Orders: found}
	}
	return files, nil
}

// open finds the files of some patterns, which are read as the flags say.
func (f *InputFlags) open(ctx context.Context, cfg *config.Config, patterns ...string) ([]backfill.Input, error) {
	files, err := openInputs(ctx, cfg, patterns)
	for i := range files {
		files[i].Read = f.read
	}
	return files, err
}

// AllowsUnmatched reports whether no record need have a field of the mapping.
func (f *InputFlags) AllowsUnmatched() bool { return f.allowUnmatched }

// CheckRecords is how many records of the nodes, and of the edges, are read before files are sent.
const CheckRecords = 10_000

// CheckMapping reads the first records of the files, before anything is stored. A field of the mapping that
// none of them has is a usage error.
func (f *InputFlags) CheckMapping(ctx context.Context, cfg *config.Config, files backfill.Sources) (
	*preview.Preview, error) {
	if !files.NonEmpty() {
		return nil, nil
	}
	p, err := PreviewFiles(ctx, f.PreviewOptions(cfg, CheckRecords, 0), files)
	if err != nil {
		return nil, err
	}
	if err := p.Err(FieldFlags); err != nil && !f.allowUnmatched {
		return nil, UsageError(fmt.Errorf("%w\n'giantstream preview' with the same flags shows the records as they "+
			"would be mapped; --allow-unmatched goes on all the same, as where these records may lack a field", err))
	}
	return p, nil
}

// FieldFlags are the flags of the mapped fields.
var FieldFlags = map[string]string{"nodes.id": "--id", "nodes.text": "--text", "nodes.class": "--class",
	"nodes.event_time": "--event-time or --nodes-event-time", "edges.src": "--src", "edges.dst": "--dst",
	"edges.event_time": "--event-time or --edges-event-time",
	"edges.weight":     "--edge-weight", "edges.kind": "--edge-kind",
	"baskets.id": "--order-id", "baskets.items": "--order-item", "baskets.quantity": "--order-quantity",
	"baskets.time": "--order-time", "baskets.kind": "--order-kind", "baskets.customer": "--order-customer",
	"baskets.event_time": "--event-time or --order-event-time",
	"nodes.attributes":   "--attribute", "nodes.vectors": "--vector"}

// PreviewFiles maps the first records of files.
func PreviewFiles(ctx context.Context, o preview.Options, files backfill.Sources) (*preview.Preview, error) {
	c, err := preview.New(o)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(c.Nodes().Files(ctx, files.Nodes), c.Edges().Files(ctx, files.Edges)); err != nil {
		return nil, err
	}
	for topic, attributes := range files.Attributes {
		if err := c.Attributes(topic).Files(ctx, attributes); err != nil {
			return nil, err
		}
	}
	for topic, edges := range files.EdgeTopics {
		if err := c.EdgeTopic(topic).Files(ctx, edges); err != nil {
			return nil, err
		}
	}
	for _, orders := range files.Orders {
		if err := c.Orders().Files(ctx, orders); err != nil {
			return nil, err
		}
	}
	return c.Result(), nil
}

// openInputs finds the files or objects behind the patterns.
func openInputs(ctx context.Context, cfg *config.Config, patterns []string) ([]backfill.Input, error) {
	var inputs []backfill.Input
	for _, p := range patterns {
		found, err := openInput(ctx, cfg, p)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, found...)
	}
	return inputs, nil
}

func openInput(ctx context.Context, cfg *config.Config, pattern string) ([]backfill.Input, error) {
	scheme, rest, isURL := strings.Cut(pattern, "://")
	if !isURL || scheme == "file" {
		return backfill.Files(pattern)
	}
	bucket, glob, _ := strings.Cut(rest, "/")
	if bucket == "" || glob == "" {
		return nil, fmt.Errorf("%q: want %s://bucket/pattern", pattern, scheme)
	}
	at := *cfg
	at.Store = scheme + "://" + bucket
	store, err := wiring.OpenStore(ctx, &at)
	if err != nil {
		return nil, err
	}
	return backfill.Objects(ctx, store, glob)
}

// WarnOfMapping logs what of the mapping may be a mistake.
func WarnOfMapping(log *slog.Logger, mapped *preview.Preview) {
	if mapped == nil {
		return
	}
	for _, warning := range mapped.Warnings() {
		log.Warn("the mapping may be wrong: " + warning)
	}
}
