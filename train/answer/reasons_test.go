package answer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"giantstream/internal/race"
	"giantstream/sink/embedding"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
	"giantstream/train/generation/generationtest"
	"giantstream/train/numeric"
)

// explained is a catalog of a shop, whose log has all nodes.
func explained(t *testing.T, s shop, settings fit.Settings) (*world, *history) {
	t.Helper()
	w, log := &world{store: &memstore.Store{}, shop: s}, &history{nil}
	for _, r := range s.Source {
		(*log)[0] = append((*log)[0], node(r.NodeID, r.Text, ""))
	}
	w.served = open(t, w.store, generationtest.Build(t, w.store, s, settings))
	w.Catalog = New(Options{Store: w.store, Log: log, Shards: 1, Exact: true,
		Generation: func() *generation.Generation { return w.served }})
	w.update(t)
	return w, log
}

// addUp checks what parts of a cosine say, and returns the sum of what n-grams carry.
func addUp(t *testing.T, n Neighbour) (ofNGrams float64) {
	t.Helper()
	sum := n.Because.Rounding
	for _, v := range n.Because.Views {
		if sum += v.Cosine; slices.Contains([]string{"bag", "linear", "lsa"}, v.Name) {
			ofNGrams += v.Cosine
		}
	}
	named := n.Because.Others
	for _, g := range n.Because.NGrams {
		named += g.Cosine
	}
	if math.Abs(sum-float64(n.Cosine)) > 1e-9 || math.Abs(named-ofNGrams) > 1e-9 || len(n.Because.NGrams) > maxReasons {
		t.Fatalf("%s: %+v add up to %g, the cosine is %g; n-grams to %g, their views to %g", n.ID, n.Because, sum,
			n.Cosine, named, ofNGrams)
	}
	if math.Abs(n.Because.Rounding) > 0.01 {
		t.Fatalf("%s: %+v: the index is not as rough as that", n.ID, n.Because)
	}
	return ofNGrams
}

// Reasons add up for every encoder, with what items are ordered with, for embeddings that are stored cut and in eight
// bits, and for a generation that was turned to the one before.
func TestReasonsOfSimilarItemsAddUp(t *testing.T) {
	race.SkipComputing(t)
	for name, c := range map[string]struct {
		change func(*fit.Settings)
		views  []string
		builds int
	}{
		"linear":  {func(*fit.Settings) {}, []string{"linear"}, 1},
		"aligned": {func(*fit.Settings) {}, []string{"linear"}, 2},
		"cut": {func(s *fit.Settings) { s.Stored = embedding.Format{Dim: 8, Type: embedding.Int8} },
			[]string{"linear"}, 1},
		"bag": {func(s *fit.Settings) { s.Encoder, s.Epochs = "bag", 1 }, []string{"bag"}, 1},
		"hybrid": {func(s *fit.Settings) { s.Encoder, s.Epochs = "hybrid", 1 },
			[]string{"bag", "linear", "lsa", "orders"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			settings := shopSettings()
			c.change(&settings)
			w, _ := explained(t, someShop(), settings)
			for range c.builds - 1 {
				w.served = open(t, w.store, generationtest.Build(t, w.store, w.shop, settings))
				w.update(t)
			}
			ask := func(like []Like) Nearest {
				got, err := w.Similar(like, Wanted{K: 30, Explain: true})
				if errors.Is(err, ErrTexts) {
					w.update(t)
					got, err = w.Similar(like, Wanted{K: 30, Explain: true})
				}
				if err != nil {
					t.Fatal(err)
				}
				plain, err := w.Similar(like, Wanted{K: 30})
				if err != nil || len(plain.Neighbours) != 30 {
					t.Fatalf("%+v, %v", plain, err)
				}
				for i, n := range plain.Neighbours {
					if is := got.Neighbours[i]; is.ID != n.ID || is.Cosine != n.Cosine || n.Because != nil {
						t.Fatalf("answer %d is %+v, with reasons %+v", i, n, is)
					}
				}
				return got
			}
			reasons := 0
			for _, like := range [][]Like{{{ID: "node-0001", Weight: 1}}, {{Text: "the topic2word3 topic1word4", Weight: 1}},
				{{ID: "node-0002", Weight: 2}, {Text: "topic3word9", Weight: 1}, {ID: "node-0007", Weight: -0.5}}} {
				for _, n := range ask(like).Neighbours {
					if n.Because == nil {
						if n.WhyNot != noText {
							t.Errorf("%s has no reasons: %q", n.ID, n.WhyNot)
						}
						continue
					}
					reasons++
					addUp(t, n)
					var views []string
					for _, v := range n.Because.Views {
						views = append(views, v.Name)
					}
					if !slices.Equal(views, c.views) {
						t.Fatalf("the views are %q, want %q", views, c.views)
					}
				}
			}
			if reasons < 60 {
				t.Errorf("%d of 90 answers have reasons", reasons)
			}
		})
	}
}

// The reasons follow the texts: of a node that has changed they are those of the new text, of a deleted one there are
// none, and a text that the embedding is not of is no reason.
func TestReasonsFollowTheTexts(t *testing.T) {
	w, log := explained(t, someShop(), shopSettings())
	similar := func() map[string]Neighbour {
		t.Helper()
		got, err := w.Similar([]Like{{ID: "node-0001", Weight: 1}}, Wanted{K: 100, Explain: true})
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]Neighbour{}
		for _, n := range got.Neighbours {
			all[n.ID] = n
		}
		return all
	}
	if _, err := w.Similar([]Like{{ID: "node-0001", Weight: 1}}, Wanted{K: 5, Explain: true}); !errors.Is(err, ErrTexts) {
		t.Fatalf("before texts are read: %v", err)
	}
	w.update(t)
	if n := similar()["node-0005"]; n.Because == nil {
		t.Fatalf("%+v", n)
	}
	*log = append(*log, []Row{node("node-0005", "topic1word2 topic1word7", ""),
		{Row: rows.Row{NodeID: "node-0009", Deleted: true}},
		alone("node-0013", `{"a":1}`)})
	w.update(t)
	all := similar()
	const now = " topic1word2 topic1word7 "
	if n := all["node-0005"]; n.Because == nil || len(n.Because.NGrams) == 0 {
		t.Errorf("of the new text: %+v", n)
	} else if slices.ContainsFunc(n.Because.NGrams, func(g NGramPart) bool {
		return !strings.Contains(now, g.Text)
	}) {
		t.Errorf("of the new text: %+v", n.Because)
	}
	if n := all["node-0013"]; n.Because == nil {
		t.Errorf("whose attributes have changed: %+v", n)
	}
	if _, is := all["node-0009"]; is {
		t.Error("a deleted node is answered")
	}
	kept := &w.texts
	content := make([]byte, kept.size)
	if _, err := kept.file.ReadAt(content, 0); err != nil {
		t.Fatal(err)
	}
	if old := w.shop.Source[9]; old.NodeID != "node-0009" || strings.Contains(string(content), old.Text) {
		t.Error("the text of a deleted node is still in the file")
	}
	b := &textBatch{texts: kept} // of what the index does not know
	changed := node("node-0005", "the topic3word4", "")
	if err := errors.Join(b.add(&changed), b.flush()); err != nil {
		t.Fatal(err)
	}
	if n := similar()["node-0005"]; n.Because != nil || n.WhyNot != otherwise {
		t.Errorf("of another text: %+v", n)
	}
}

// Texts are kept as the newest rows have them, whatever is written again, and the file does not grow without end.
func TestTextsAreThoseOfTheNewestRows(t *testing.T) {
	r := numeric.NewRand(5, 't')
	log, want := &history{}, map[string]string{}
	kept := &texts{}
	kept.wanted.Store(true)
	var ids []string
	for k := range 40 {
		ids = append(ids, fmt.Sprint("id-", k))
	}
	for range 300 {
		var stretch []Row
		for _, id := range ids {
			switch r.IntN(8) {
			case 0:
				stretch = append(stretch, Row{Row: rows.Row{NodeID: id, Deleted: true}})
				delete(want, id)
			case 1:
				text := strings.Repeat(fmt.Sprint(r.IntN(1000), " "), r.IntN(4000))
				stretch = append(stretch, node(id, text, ""))
				want[id] = text
			}
		}
		*log = append(*log, stretch)
		for range 2 {
			if err := kept.update(t.Context(), log, []int64{int64(len(*log))}); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := kept.get(append(ids, "unknown"))
	if err != nil {
		t.Fatal(err)
	}
	live := int64(0)
	for i, id := range ids {
		if got[i] != want[id] {
			t.Fatalf("%s has a text of %d bytes, want %d", id, len(got[i]), len(want[id]))
		}
		if want[id] != "" {
			live += int64(recordHead + len(id) + len(want[id]))
		}
	}
	if got[len(ids)] != "" || kept.live != live {
		t.Errorf("an unknown node has %q; %d bytes count, want %d", got[len(ids)], kept.live, live)
	}
	kept.size = 3*live + idleTexts // as after more of that
	if err := kept.update(t.Context(), log, []int64{int64(len(*log))}); err != nil || kept.size > 2*live+idleTexts {
		t.Errorf("a file of %d bytes is begun anew with %d, %v", 3*live+idleTexts, kept.size, err)
	}
	if again, err := kept.get(append(ids, "unknown")); err != nil || !slices.Equal(again, got) {
		t.Errorf("begun anew, texts are others, %v", err)
	}
}

// A folder for temporary files that fails is told to who asks for reasons, and no one else.
func TestReasonsWithoutAFile(t *testing.T) {
	w, _ := explained(t, someShop(), shopSettings())
	like := []Like{{ID: "node-0001", Weight: 1}}
	where := os.TempDir()
	t.Setenv("TMPDIR", where+"/there is none")
	for _, want := range []string{"the texts are being read", "keep texts in a temporary file",
		"keep texts in a temporary file"} {
		if _, err := w.Similar(like, Wanted{K: 5, Explain: true}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		w.update(t)
	}
	t.Setenv("TMPDIR", where)
	if _, err := w.Similar(like, Wanted{K: 5}); err != nil {
		t.Error(err)
	}
	for range 2 {
		_, _ = w.Similar(like, Wanted{K: 5, Explain: true})
		w.update(t)
	}
	if got, err := w.Similar(like, Wanted{K: 5, Explain: true}); err != nil || got.Neighbours[0].Because == nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestReasonsOverHTTP(t *testing.T) {
	w, _ := explained(t, someShop(), shopSettings())
	h := Handler(w.Catalog, Serving{})
	if code, body := askGoesWith(t, h, "GET", "/similar/node-0001?explain=true", ""); code != 503 {
		t.Errorf("%d %s", code, body)
	}
	w.update(t)
	code, body := askGoesWith(t, h, "GET", "/similar/node-0001?explain=true&k=3", "")
	var got reply
	if err := json.Unmarshal([]byte(body), &got); err != nil || code != 200 || len(got.Results) != 3 {
		t.Fatalf("%d %s, %v", code, body, err)
	}
	for _, one := range got.Results {
		addUp(t, Neighbour{ID: one.ID, Cosine: one.Cosine, Because: one.Because})
	}
	_, posted := askGoesWith(t, h, "POST", "/similar", `{"id":"node-0001","explain":true,"k":3}`)
	if posted != body {
		t.Errorf("POST answers %s, and GET %s", posted, body)
	}
	var answered any
	if err := json.Unmarshal([]byte(body), &answered); err != nil {
		t.Fatal(err)
	}
	conforms(t, "Answer", schemas(t), schemas(t)["Answer"].(map[string]any), answered)
	const question = `{"id":"node-0001","explain":true,"k":60}`
	for _, c := range [][2]string{{`{"id":"node-0001","explain":true,"k":101}`, "for 100 answers together"},
		{`{"questions":[` + question + "," + question + `]}`, `]},{"status":400,"error":"with explain,`},
		{`{"id":"node-0001","explain":1}`, "the question: "}} {
		if _, body := askGoesWith(t, h, "POST", "/similar", c[0]); !strings.Contains(body, c[1]) {
			t.Errorf("%s: %.300s", c[0], body)
		}
	}
}

// schemas are those of openapi.json.
func schemas(t *testing.T) map[string]any {
	t.Helper()
	var doc struct {
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Components.Schemas
}

// conforms checks that a value is what a schema of objects, lists and plain types describes, and nothing besides.
func conforms(t *testing.T, at string, all, schema map[string]any, value any) {
	t.Helper()
	if ref, is := schema["$ref"].(string); is {
		schema = all[ref[strings.LastIndex(ref, "/")+1:]].(map[string]any)
	}
	kind := map[string]string{"map[string]interface {}": "object", "[]interface {}": "array", "float64": "number",
		"string": "string"}[fmt.Sprintf("%T", value)]
	if want, is := schema["type"].(string); is && want != kind && (want != "integer" || kind != "number") {
		t.Errorf("%s is of the type %s, described as %s", at, kind, want)
	}
	if choices, is := schema["enum"].([]any); is && !slices.Contains(choices, value) {
		t.Errorf("%s is %v, described as one of %v", at, value, choices)
	}
	switch value := value.(type) {
	case []any:
		for i, one := range value {
			conforms(t, fmt.Sprintf("%s[%d]", at, i), all, schema["items"].(map[string]any), one)
		}
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		for name, one := range value {
			if properties[name] == nil {
				t.Errorf("%s.%s is not described", at, name)
				continue
			}
			conforms(t, at+"."+name, all, properties[name].(map[string]any), one)
		}
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, is := value[name.(string)]; !is {
				t.Errorf("%s lacks %s", at, name)
			}
		}
	}
}
