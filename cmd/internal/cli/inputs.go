package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/backfill"
)

// inputFlags name the input files and map their fields.
type inputFlags struct {
	nodes, edges []string

	id, class, src, dst, eventTime string
	text                           []string
	directed, stripHTML            bool
}

// oldClassFlag is what --class was called. It stays accepted, with a hint.
const oldClassFlag = "label"

func (f *inputFlags) register(c *cobra.Command) {
	fl := c.Flags()
	fl.StringArrayVar(&f.nodes, "nodes", nil,
		"files with nodes: `GLOB` of .jsonl, .csv or .parquet, also .gz and .zst, or s3://bucket/glob (repeatable)")
	fl.StringArrayVar(&f.edges, "edges", nil, "files with edges: `GLOB`, as --nodes (repeatable)")
	fl.StringVar(&f.id, "id", "", "field with the node's id (default id)")
	fl.StringArrayVar(&f.text, "text", nil, "field with the node's text; repeat to join several (default text)")
	fl.BoolVar(&f.stripHTML, "strip-html", false, "drop HTML tags, comments, scripts and styles from the texts")
	fl.StringVar(&f.class, "class", "", "field with the node's class, for evaluation (default label)")
	fl.StringVar(&f.class, oldClassFlag, "", "")
	_ = fl.MarkHidden(oldClassFlag) // it exists
	fl.StringVar(&f.src, "src", "", "field with an edge's source id (default src)")
	fl.StringVar(&f.dst, "dst", "", "field with its destination, or destinations: also_bought[*] (default dst)")
	fl.StringVar(&f.eventTime, "event-time", "",
		"field with the time of the change (default: the file's modification time)")
	fl.BoolVar(&f.directed, "directed", false, "edges have a direction: only destinations are labels")
}

// apply sets the fields of the configuration that flags were given for.
func (f *inputFlags) apply(cfg *config.Config) {
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
	set(&in.Nodes.EventTime, f.eventTime)
	set(&in.Edges.EventTime, f.eventTime)
	if len(f.text) > 0 {
		in.Nodes.Text = f.text
	}
	if f.directed {
		in.Undirected = false
	}
	if f.stripHTML {
		in.Nodes.StripHTML = true
	}
}

func (f *inputFlags) given() bool { return len(f.nodes)+len(f.edges) > 0 }

// staleWarning says which of the records that were sent lose to earlier ones; "" if none is known to.
func staleWarning(s *backfill.Stats) string {
	if s.Stale == 0 {
		return ""
	}
	return fmt.Sprintf("%s of them change nothing that the earlier version of their file said: the file is older than "+
		"that version, and its time is their event time; touch it and run again to make it win: %s",
		console.Count(s.Stale), console.Plain(strings.Join(s.StaleFiles, ", ")))
}

// open finds the input files.
func (f *inputFlags) open(ctx context.Context, cfg *config.Config) (nodes, edges []backfill.Input, err error) {
	if nodes, err = openInputs(ctx, cfg, f.nodes); err != nil {
		return nil, nil, usageError{fmt.Errorf("--nodes: %w", err)}
	}
	if edges, err = openInputs(ctx, cfg, f.edges); err != nil {
		return nil, nil, usageError{fmt.Errorf("--edges: %w", err)}
	}
	return nodes, edges, nil
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
