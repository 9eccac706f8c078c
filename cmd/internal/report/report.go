package report

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/nodemap"
	"giantstream/internal/ambient"
	"giantstream/sink"
	"giantstream/train/generation"
)

// Input is what a page is made from.
type Input struct {
	Store sink.Store
	// Doc is a generation that is ready, Parent the one before it; nil if there is none, or none
	// any more.
	Doc, Parent *generation.Doc
	// Source is the cut of Doc.
	Source generation.Source
	// Nodes are ids of nodes to say more of.
	Nodes    []string
	Progress ambient.Progress
}

//go:embed page.html
var pageHTML string

//go:embed search.js
var searchJS string

// page is what the template shows.
type page struct {
	Doc       *generation.Doc
	Took      float64 // seconds of all stages
	Settings  []setting
	Charts    []chart
	Labels    int // in the tree
	Levels    []level
	Tree      []*branch
	TreeDepth int
	Maps      []drawing
	Legend    []nodemap.Group
	Colours   template.CSS
	ByCluster bool // the legend's groups are clusters, not classes
	Examples  []*example
	Chosen    []*chosen
	Quality   *quality
	Past      []past // all generations up to this one, oldest first
	Timeline  []chart
	Scores    scores
	Changes   *changes
	// Script searches the sample. The page's policy lets it run, and nothing else.
	Script template.JS
	Policy string
}

// Write writes the page of a generation.
func Write(ctx context.Context, w io.Writer, in Input) error {
	doc := in.Doc
	if !doc.Complete() {
		return fmt.Errorf("generation %d is %s: there is nothing to report before it is ready",
			doc.Generation, doc.Status)
	}
	progress := ambient.OrDiscard(in.Progress)
	tmpl, err := template.New("page").Funcs(functions()).Parse(pageHTML)
	if err != nil {
		return err
	}
	p := &page{Doc: doc, Charts: charts(doc.Encoder.Metrics), Scores: scoresOf(doc)}
	for _, s := range doc.Stages {
		p.Took += s.Seconds
	}
	if p.Settings, err = settings(doc.Settings); err != nil {
		return err
	}
	if p.Changes, err = changesSince(in.Parent, doc); err != nil {
		return err
	}
	p.Past = pastOf(doc)
	p.Timeline = timeline(p.Past)
	progress.Stage("label tree", 0)
	var outline []generation.Cluster
	if p.Tree, p.TreeDepth, outline, err = tree(ctx, in.Store, doc, len(in.Nodes) > 0); err != nil {
		return err
	}
	p.Labels, p.Levels = levels(doc, p.Tree)
	s, err := survey(ctx, in, progress)
	if err != nil {
		return err
	}
	p.Examples, p.ByCluster, p.Chosen, p.Quality = s.examples, s.classless, s.chosen, &s.quality
	place(p.Chosen, outline, s.open)
	progress.Stage("map", 0)
	p.Maps, p.Legend = draw(s)
	p.Colours = template.CSS(nodemap.Style()) //nolint:gosec // our own
	p.Policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
	if len(p.Maps) > 0 {
		sum := sha256.Sum256([]byte(searchJS))
		p.Script = template.JS(searchJS) //nolint:gosec // a file of this package
		p.Policy += "; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return tmpl.Execute(w, p)
}

func functions() template.FuncMap {
	return template.FuncMap{
		"count":   console.Count[int],
		"bytes":   console.Bytes,
		"seconds": func(s float64) string { return console.Duration(time.Duration(s * float64(time.Second))) },
		"percent": func(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) },
		"share":   func(x float64) string { return fmt.Sprintf("%g %%", 100*x) },
		"three":   func(x float64) string { return fmt.Sprintf("%.3f", x) },
		"time":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"join":    func(terms []string) string { return strings.Join(terms, ", ") },
		"rows": func(parts []sink.Part) string {
			var rows, bytes int64
			for _, p := range parts {
				rows, bytes = rows+p.Rows, bytes+p.Bytes
			}
			return console.Count(rows) + " rows, " + console.Bytes(bytes)
		},
	}
}
