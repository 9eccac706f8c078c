package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
	"giantstream/train/generation/generationtest"
	"giantstream/train/generation/relations"
)

const hostile = `<script>alert(1)</script><img src="https://example.org/x" onerror=alert(2)>`

// graph has n nodes of four topics, which write in their own words and link within; everything a
// user could write is hostile.
func graph(n int, class func(topic int) string) generationtest.Source {
	r := rand.New(rand.NewPCG(1, 1))
	id := func(i int) string { return fmt.Sprintf("node-%03d%s", i, hostile) }
	var out generationtest.Source
	for i := range n {
		row := rows.Row{NodeID: id(i), Class: class(i % 4), Text: hostile, EventTime: 1}
		for range 10 {
			row.Text += fmt.Sprintf(" topic%dword%d", i%4, r.IntN(25))
		}
		for _, step := range []int{4, 8, 12} {
			row.Labels = append(row.Labels, id((i+step)%n), id((i-step+n)%n))
		}
		slices.Sort(row.Labels)
		out = append(out, row)
	}
	return out
}

func build(t *testing.T, store *memstore.Store, g int64, source generationtest.Source) *generation.Doc {
	t.Helper()
	s := fit.Settings{
		Profile: "default", MaxDegree: 1000, ProjectionDim: 32, EmbeddingDim: 16, Weighting: "sum", LabelFeatures: "pifa",
		LeafSize: 10, Encoder: "bag", Epochs: 3, Seed: 1, Holdout: 0.1, ProbeRates: []float64{0.5}, EvalSeed: 1,
	}
	doc := generationtest.Build(t, store, source, s)
	if doc.Generation != g {
		t.Fatalf("generation %d was built, not %d", doc.Generation, g)
	}
	return doc
}

func write(t *testing.T, in Input) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(t.Context(), &b, in); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The page of a second generation says everything, takes hostile texts for texts, loads nothing and
// is the same every time.
func TestPage(t *testing.T) {
	store := &memstore.Store{}
	source := graph(240, func(topic int) string { return fmt.Sprintf("class %d %s", topic, hostile) })
	parent := build(t, store, 1, source[:236])
	in := Input{Store: store, Doc: build(t, store, 2, source), Parent: parent, Source: source}
	doc := in.Doc
	doc.Graph.Orders = &generation.OrderStats{Orders: 1234, Lines: 5678, Items: 231, Pairs: 91011, Kept: 1213,
		Partners: []generation.AtLeast{{Partners: 1, Items: 230}, {Partners: 5, Items: 7}}}
	doc.Graph.Relations = []relations.Relation{{Kind: "bought", Links: 4321, Asked: 800, Dated: true, Surplus: 0.5,
		Error: 0.02, Weight: 1, Exponent: 0.5, Scale: 1}, {Kind: hostile, Links: 77, Asked: 3, Weight: 1}}
	doc.Graph.Weightless = 2345
	doc.Graph.Vectors = []fit.VectorStats{{Name: "image", Length: 512, Dim: 128, Items: 1357, Weight: 0.35, Asked: 900,
		Without: 0.838, With: 0.8516, Error: 0.0023}, {Name: "rare", Length: 3}}
	doc.Encoder.Metrics = append([]byte(`{"levels": [{"clusters": 2497, "p_at_1": 0.634}],`), doc.Encoder.Metrics[1:]...)
	in.Nodes = []string{source[7].NodeID, source[0].NodeID}
	page := write(t, in)

	for _, want := range []string{
		"<h1>Generation 2</h1>", "lsa (text only)", "Training loss", "topic3word", "Map of the embeddings", "class 2",
		"graph-aware", ">linked<", "6 neighbours</b> in the graph: ", "similar, graph-aware", "Links of a node", "100 %",
		"All generations", "1,234 orders have 5,678 lines", "230 have 1, 7 have 5 partners or more",
		"<td class=\"n\">4–7</td><td class=\"n\">240</td>",
		"<td>bought</td><td class=\"n\">4,321</td><td class=\"n\">1.00</td><td>texts predict the latest with an AUC of " +
			"0.750 ± 0.010; the weights that links state count by their roots</td>",
		"<td>image</td><td class=\"n\">512</td><td class=\"n\">1,357</td><td class=\"n\">0.35</td><td>held-out links " +
			"are told with an AUC of 0.852, without the vector 0.838 (± 0.002)</td>", "too few vectors, or all alike",
		"too few links to tell: 3 were held out", "2,345 links weigh nothing",
		"Since generation 1", "<td>nodes</td><td class=\"n\">236</td><td class=\"n\">240</td><td class=\"n\">&#43;4</td>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(page, "recall@10") { // earlier releases stored figures of nodes that the heads began at
		t.Error("the page has figures of the heads")
	}
	wellFormed(t, page)
	if again := write(t, in); again != page {
		t.Error("a second page differs")
	}
	first, _, _ := strings.Cut(page, "similar, text only")
	if path := strings.Count(first, "</code> <span"); path != len(doc.Tree.Levels) {
		t.Errorf("the path of the first node has %d clusters, the tree %d levels", path, len(doc.Tree.Levels))
	}
	in.Nodes = []string{"nobody"}
	err := Write(t.Context(), io.Discard, in)
	if err == nil || !strings.Contains(err.Error(), `node "nobody" is not in the cut of generation 2`) {
		t.Errorf("a node that does not exist: %v", err)
	}
}

// Nodes that no link leads to are labels in no cluster.
func TestThePageCountsTheLabelsInTheTree(t *testing.T) {
	source := graph(160, func(int) string { return "" })
	for i := range 80 {
		source = append(source, rows.Row{NodeID: fmt.Sprintf("zz%02d", i), Text: source[i].Text, EventTime: 1})
	}
	store := &memstore.Store{}
	doc := build(t, store, 1, source)
	page := write(t, Input{Store: store, Doc: doc, Source: source})
	each := fmt.Sprintf("%.1f</td></tr>", 160/float64(doc.Tree.Levels[0]))
	for _, want := range []string{"<b>160</b><span>labels in the tree", "<p>160 labels;", each} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// wellFormed reads the page's elements: none that runs or loads something, ends where they should.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, []string{"meta", "link", "input", "br"}, xml.HTMLEntity
	depth, circles, scripts := 0, 0, 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			depth++
			switch e.Name.Local {
			case "script":
				scripts++
			case "img", "iframe", "object", "embed", "base", "form", "foreignObject", "use":
				t.Errorf("the page has an element %s", e.Name.Local)
			case "circle":
				circles++
			}
			for _, a := range e.Attr {
				local := strings.HasPrefix(a.Value, "#") || a.Value == "data:,"
				if name := a.Name.Local; strings.HasPrefix(name, "on") || (name == "src" || name == "href") && !local {
					t.Errorf("the page has %s=%q in %s", name, a.Value, e.Name.Local)
				}
			}
		case xml.EndElement:
			depth--
		}
	}
	if depth != 0 {
		t.Errorf("%d elements are not closed", depth)
	}
	if circles < 2*240 {
		t.Errorf("%d circles: both maps should show all nodes", circles)
	}
	sum := sha256.Sum256([]byte(searchJS))
	hash := strings.ReplaceAll(base64.StdEncoding.EncodeToString(sum[:]), "+", "&#43;")
	if scripts != 1 || !strings.Contains(page, "<script>"+searchJS+"</script>") ||
		!strings.Contains(page, "script-src &#39;sha256-"+hash+"&#39;\"") {
		t.Error("the page's one script is not as its policy says")
	}
	style := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(page)
	if style == nil || regexp.MustCompile(`url\(|@import`).MatchString(style[1]) {
		t.Error("the style is missing, or loads something")
	}
}

// The picture has a point for each node on both maps, takes hostile classes for texts, and is the same every time.
func TestPicture(t *testing.T) {
	store := &memstore.Store{}
	source := graph(240, func(topic int) string { return fmt.Sprintf("class %d %s", topic, hostile) })
	in := Input{Store: store, Doc: build(t, store, 1, source), Source: source}
	var first, second bytes.Buffer
	if err := errors.Join(WritePicture(t.Context(), &first, in), WritePicture(t.Context(), &second, in)); err != nil {
		t.Fatal(err)
	}
	if first.String() != second.String() {
		t.Error("a second picture differs")
	}
	d := xml.NewDecoder(&first)
	points := 0
	var words []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if !slices.Contains([]string{"svg", "style", "g", "text", "path", "circle"}, e.Name.Local) {
				t.Errorf("the picture has an element %s", e.Name.Local)
			}
			for _, a := range e.Attr {
				if a.Name.Local == "d" {
					points += strings.Count(a.Value, "h0")
				}
			}
		case xml.CharData:
			words = append(words, string(e))
		}
	}
	if points != 2*240 {
		t.Errorf("%d points, want each node on both maps", points)
	}
	if !slices.Contains(words, "class 3 "+hostile) || !slices.Contains(words, "the texts alone (lsa)") {
		t.Errorf("the picture says %q", words)
	}
}

// A page says at its top that the generation is worse than text alone, and what became of it.
func TestPageOfAGenerationWorseThanText(t *testing.T) {
	store := &memstore.Store{}
	source := graph(240, func(topic int) string { return fmt.Sprintf("class %d", topic) })
	doc := build(t, store, 1, source)
	in := Input{Store: store, Doc: doc, Source: source}
	if page := write(t, in); strings.Contains(page, "Worse than text alone") || strings.Contains(page, "Refused") {
		t.Error("the page warns of a generation without shortfalls")
	}
	doc.Shortfalls = []fit.Shortfall{{Figure: "MRR", Text: 0.4, Encoder: 0.3, StdErr: 0.01}}
	if page := write(t, in); !strings.Contains(page, "Worse than text alone:") ||
		!strings.Contains(page, "MRR 0.300 (text alone 0.400)") {
		t.Error("the page does not warn")
	}
	doc.Status, doc.Parent = generation.Refused, 7
	page := write(t, in)
	if !strings.Contains(page, "Refused by the quality gate; generation 7 keeps serving") {
		t.Error("the page does not say that the generation was refused")
	}
	wellFormed(t, page)
	if !strings.Contains(page, "Cold start: nodes by degree") {
		t.Error("the page has no figures by degree")
	}
}

func TestWithoutClassesTheMapShowsClusters(t *testing.T) {
	store := &memstore.Store{}
	source := graph(240, func(int) string { return "" })
	page := write(t, Input{Store: store, Doc: build(t, store, 1, source), Source: source})
	if !strings.Contains(page, "No node has a class") || strings.Contains(page, "Since generation") {
		t.Error("the page should colour by clusters and say nothing of a generation before")
	}
}

func TestUnfinishedGenerationIsRefused(t *testing.T) {
	err := Write(t.Context(), io.Discard, Input{Doc: &generation.Doc{Generation: 3, Status: generation.Building}})
	if err == nil || !strings.Contains(err.Error(), "building") {
		t.Errorf("got %v", err)
	}
}

// A transformer's report has steps and judgments; its loss is drawn in pieces, one per level.
func TestChartsOfATransformer(t *testing.T) {
	got := charts(json.RawMessage(`{"best_step": 20, "curve": [
		{"step":10,"level":0,"loss":3},{"step":20,"level":0,"loss":2},
		{"step":30,"level":1,"loss":4},{"step":40,"level":1,"loss":1}],
		"judged": [{"step":20,"score":0.9},{"step":40,"score":0.8}]}`))
	if len(got) != 2 {
		t.Fatalf("%d charts, want loss and score", len(got))
	}
	loss, score := got[0], got[1]
	if len(loss.Lines) != 2 || len(loss.Dots) != 1 || loss.Across != "step" {
		t.Errorf("loss: %+v", loss)
	}
	if len(score.Lines) != 1 || score.Dots[0].Title != "kept: step 20, 0.9" {
		t.Errorf("score: %+v", score)
	}
	both := charts(json.RawMessage(`{"curve": [{"step":1,"loss":3},{"step":2,"loss":2}], "ngrams": {"curve": ` +
		`[{"step":1,"loss":5},{"step":5,"loss":3},{"step":9,"loss":4}]}}`))
	if len(both) != 2 || both[0].Title != "Training loss, n-grams" || both[1].Title != "Training loss, model" ||
		both[0].Lines[0] == both[1].Lines[0] {
		t.Errorf("with n-grams: %+v", both)
	}
	for _, nothing := range []string{``, `{}`, `[]`, `{"curve": "x"}`, `{"epochs": [{"loss": 1}]}`} {
		if c := charts(json.RawMessage(nothing)); c != nil {
			t.Errorf("%q gives %v", nothing, c)
		}
	}
}

func TestTicksAreRoundAndCover(t *testing.T) {
	for _, c := range []struct{ lo, hi float64 }{{0, 1}, {0.9788, 0.9792}, {1, 5}, {0, 12345}, {-3, 7}, {2, 2}} {
		got := ticks(c.lo, c.hi)
		if len(got) < 2 || len(got) > chartTicks+2 || got[0] > c.lo || got[len(got)-1] < c.hi {
			t.Errorf("ticks of %v: %v", c, got)
		}
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	for _, n := range []int{1, 2, 3, 3, 9} {
		h.add(n)
	}
	want := []bar{{"1", 1, "33.3"}, {"2–3", 3, "100.0"}, {"4–7", 0, "0.0"}, {"8–15", 1, "33.3"}}
	if got := h.Bars(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestPercentOfAlmostAll(t *testing.T) {
	q := quality{Nodes: 10000}
	for part, want := range map[int]string{0: "0 %", 1: "0.1 %", 5000: "50.0 %", 9999: "99.9 %", 10000: "100 %"} {
		if got := q.Percent(part); got != want {
			t.Errorf("%d of 10,000: %s, want %s", part, got, want)
		}
	}
}
