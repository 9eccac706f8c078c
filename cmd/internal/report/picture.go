package report

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"giantstream/cmd/internal/nodemap"
	"giantstream/internal/ambient"
	"giantstream/train/encoders/linear"
	"giantstream/train/generation"
	"giantstream/train/numeric"
)

// Sizes of a picture in its own units: two maps beside each other, titles above, the legend below.
const (
	panelSide, panelGap = 400, 20
	panelTop            = 26
	legendRow           = 18
	legendColumns       = 4
)

// WritePicture writes the map of a generation's embeddings beside that of the texts alone, for the same sample of
// nodes, as SVG. A map is left out if the sample has fewer than three nodes that it can place.
func WritePicture(ctx context.Context, w io.Writer, in Input) error {
	progress := ambient.OrDiscard(in.Progress)
	nodes, err := nodemap.Read(ctx, in.Store, in.Doc, nodemap.Sampled, progress)
	if err != nil {
		return err
	}
	open, err := generation.Open(ctx, in.Store, in.Doc, nil)
	if err != nil {
		return err
	}
	texts, err := byText(ctx, in.Source, open, nodes, progress)
	if err != nil {
		return err
	}
	nodemap.ClusterAsClass(nodes, open)
	progress.Stage("map", 0)
	legend, of := nodemap.Groups(nodes)
	group := make(map[string]int, len(nodes))
	for i, n := range nodes {
		group[n.ID] = of[i]
	}
	height := panelTop + panelSide + legendRow*(2+(len(legend)-1)/legendColumns)
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" `+
		`font-size="13">`+"\n", 2*panelSide+panelGap, height)
	fmt.Fprint(w, "<style>text{fill:#1d2329}@media(prefers-color-scheme:dark){text{fill:#e4e8ec}}path{fill:none;"+
		"stroke-width:4;stroke-linecap:round;stroke-opacity:.8}</style>\n")
	for k, panel := range []struct {
		title string
		nodes []nodemap.Node
	}{{"the texts alone (" + linear.LSAKind + ")", texts}, {"texts and links (" + in.Doc.Encoder.Kind + ")", nodes}} {
		layout, _ := nodemap.Layouts(panel.nodes)
		fmt.Fprintf(w, `<g transform="translate(%d 0)"><text y="15">%s</text><g transform="translate(0 %d)">`+"\n",
			k*(panelSide+panelGap), escaped(panel.title), panelTop)
		points := make([]strings.Builder, len(nodemap.Colours))
		for i, p := range nodemap.Fit(layout.At, panelSide, 4) {
			fmt.Fprintf(&points[group[panel.nodes[i].ID]], "M%.0f %.0fh0", p[0], p[1])
		}
		// The rest lies below the groups that have a colour.
		for g := len(nodemap.Colours) - 1; g >= 0; g-- {
			if points[g].Len() > 0 {
				fmt.Fprintf(w, `<path stroke="%s" d="%s"/>`+"\n", nodemap.Colours[g], &points[g])
			}
		}
		fmt.Fprint(w, "</g></g>\n")
	}
	for i, g := range legend {
		x := i % legendColumns * ((2*panelSide + panelGap) / legendColumns)
		y := panelTop + panelSide + legendRow*(1+i/legendColumns)
		fmt.Fprintf(w, `<circle cx="%d" cy="%d" r="5" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n", x+6, y,
			nodemap.Colours[g.Number], x+18, y+4, escaped(g.Name))
	}
	_, err = fmt.Fprintln(w, "</svg>")
	return err
}

// byText gives the nodes their classes, and returns those that the text-only encoder knows, with its vectors.
func byText(ctx context.Context, source generation.Source, open *generation.Generation, nodes []nodemap.Node,
	progress ambient.Progress) (out []nodemap.Node, err error) {
	encoder, err := linear.NewLSA(open.Vectorizer, open.Projection, min(open.Encoder.Dim(), open.Projection.Dim()))
	if err != nil {
		return nil, err
	}
	at := make(map[string]int, len(nodes))
	for i, n := range nodes {
		at[n.ID] = i
	}
	progress.Stage("read the sample's texts", int64(open.Doc.Graph.Nodes))
	for r, err := range source.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		progress.Add(1)
		i, ok := at[r.NodeID]
		if !ok {
			continue
		}
		nodes[i].Class = strings.Clone(r.Class)
		vector := make([]float32, encoder.Dim())
		if err := encoder.Encode([]string{r.Text}, vector); err != nil {
			return nil, err
		}
		if numeric.Dot(vector, vector) > 0 {
			out = append(out, nodemap.Node{ID: nodes[i].ID, Vector: vector})
		}
	}
	return out, nil
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder does not fail
	return b.String()
}
