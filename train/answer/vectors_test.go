package answer

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"giantstream/internal/race"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/generation/generationtest"
	"giantstream/train/numeric"
)

// seen is a source whose nodes have vectors.
type seen struct {
	generationtest.Source
	vectors []rows.Vectors
}

func (s seen) Vectors() []rows.Vectors { return s.vectors }

// restated is a log in which some nodes have other vectors after the cut.
type restated struct {
	history
	vectors []rows.Vectors
}

func (l *restated) Stretches(ctx context.Context, shard int, after int64) iter.Seq2[Stretch, error] {
	return func(yield func(Stretch, error) bool) {
		for s, err := range l.history.Stretches(ctx, shard, after) {
			s.Vectors = func(yield func(rows.Vectors, error) bool) {
				for _, v := range l.vectors {
					if !yield(v, nil) {
						return
					}
				}
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

const pictures, groups = 600, 20

// pictured returns nodes whose links are those of their vectors, in groups, and whose texts say nothing; and their
// generation.
func pictured(t *testing.T) (*memstore.Store, seen, *generation.Generation) {
	t.Helper()
	race.SkipComputing(t)
	const nodes = pictures
	r := rand.New(rand.NewPCG(9, 9))
	var s seen
	centres := make([]float64, 24*groups)
	for k := range centres {
		centres[k] = r.NormFloat64()
	}
	for i := range nodes {
		var b []byte
		for k := range 24 {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(centres[i%groups*24+k]+0.5*r.NormFloat64())))
		}
		id := fmt.Sprintf("node-%04d", i)
		s.vectors = append(s.vectors, rows.Vectors{NodeID: id, Names: []string{"image"}, Bits: []int32{32},
			Values: [][]byte{b}})
		row := rows.Row{NodeID: id, EventTime: 1}
		for range 12 {
			row.Text += fmt.Sprintf("word%d ", r.IntN(60))
		}
		for k := range groups { // 20 of its group, both ways
			if j := (i + (2*k-groups+1)*groups + nodes) % nodes; j != i {
				row.Labels = append(row.Labels, fmt.Sprintf("node-%04d", j))
			}
		}
		slices.Sort(row.Labels)
		s.Source = append(s.Source, row)
	}
	settings := shopSettings()
	settings.Encoder, settings.Epochs, settings.LeafSize, settings.FromOrders = "hybrid", 1, 20, nil
	store := &memstore.Store{}
	doc := generationtest.Build(t, store, s, settings)
	if v := doc.Graph.Vectors; len(v) != 1 || v[0].Weight == 0 {
		t.Fatalf("the vectors weigh %+v", v)
	}
	g, err := generation.Open(t.Context(), store, doc, nil)
	if err != nil {
		t.Fatal(err)
	}
	return store, s, g
}

// A node that has another vector after the cut is found by it.
func TestVectorsFollowTheLog(t *testing.T) {
	store, s, g := pictured(t)
	of := s.vectors[1] // of another group
	of.NodeID = s.Source[0].NodeID
	log := &restated{history{{}, {node(s.Source[0].NodeID, s.Source[0].Text, ""), node("new", s.Source[1].Text, "")}},
		[]rows.Vectors{of, {NodeID: "new", Names: of.Names, Bits: of.Bits, Values: of.Values}}}
	c := New(Options{Store: store, Log: log, Shards: 1, Generation: func() *generation.Generation { return g }})
	if _, err := c.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
	index := c.now.Load().index
	vector := func(id string) []float32 {
		v := make([]float32, index.Dim())
		index.Vector(id, v)
		return v
	}
	if !slices.Equal(vector("new"), vector(s.Source[1].NodeID)) {
		t.Errorf("of two nodes with a text and a vector, the one of the log has %v, that of the build %v", vector("new"),
			vector(s.Source[1].NodeID))
	}
	like := []Like{{ID: "new", Weight: 1}}
	if _, err := c.Similar(like, Wanted{K: 1, Explain: true}); !errors.Is(err, ErrTexts) {
		t.Errorf("before texts are read: %v", err)
	}
	update(t, c)
	near, err := c.Similar(like, Wanted{K: 600, Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(near.Neighbours, func(n Neighbour) bool { return n.ID == of.NodeID })
	if n := near.Neighbours[at]; n.Because == nil {
		t.Errorf("%+v", n)
	} else if v := n.Because.Views[len(n.Because.Views)-1]; v.Name != "vector.image" || v.Cosine < 0.1 {
		addUp(t, n)
		t.Errorf("of a node with the same vector %+v", n.Because)
	}
	f := g.Following()
	f.Follow(&of)
	want, err := f.EmbedNodes([]string{of.NodeID}, []string{s.Source[0].Text})
	if err != nil {
		t.Fatal(err)
	}
	before, err := g.EmbedNodes([]string{of.NodeID}, []string{s.Source[0].Text})
	if err != nil {
		t.Fatal(err)
	}
	got := vector(of.NodeID) // in twelve bits
	if !(numeric.Cosine(got, want[0].Vector) > 0.999) || !(numeric.Cosine(got, before[0].Vector) < 0.9) {
		t.Errorf("the node has %v, at the cut %v, want %v", got, before[0].Vector, want[0].Vector)
	}
}

// A question's text has the vector that a model gives it, as a new node with both would. All texts of a request are one
// question to the model. An answer without the vector says so, and is as without a model.
func TestTextsHaveVectors(t *testing.T) {
	store, s, g := pictured(t)
	var asked [][]string
	var fails error
	of := map[string][]float32{}
	for i := range groups {
		of[fmt.Sprint("picture ", i, " word1 word2")] = s.vectors[i].Numbers(0)
	}
	model := &TextModel{View: "image", Ask: func(_ context.Context, texts []string) (out [][]float32, err error) {
		asked = append(asked, texts)
		for _, text := range texts {
			out = append(out, of[text])
		}
		if fails != nil {
			return nil, fails
		}
		return out, nil
	}}
	handler := func(m *TextModel, may error) (*Catalog, http.Handler) {
		c := New(Options{Store: store, Log: &restated{history: history{{}}}, Shards: 1, Texts: m,
			Generation: func() *generation.Generation { return g }})
		update(t, c)
		return c, Handler(c, Serving{Encodes: func(*http.Request) error { return may }})
	}
	c, h := handler(model, nil)
	_, plain := handler(nil, nil)
	ask := func(h http.Handler, path, body string) (code int, answer, without string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(body)))
		return w.Code, w.Body.String(), w.Header().Get(WithoutHeader)
	}
	found := func(answer string, group int) (n int) {
		var got reply
		if err := json.Unmarshal([]byte(answer), &got); err != nil || got.Without != "" {
			t.Fatalf("%s: %v", answer, err)
		}
		for _, one := range got.Results {
			var i int
			if _, err := fmt.Sscanf(one.ID, "node-%d", &i); err == nil && i%groups == group {
				n++
			}
		}
		return n
	}
	with, alone := 0, 0
	for group := range groups {
		question := fmt.Sprintf(`{"text":"picture %d word1 word2"}`, group)
		_, answer, _ := ask(h, "/similar", question)
		with += found(answer, group)
		_, answer, _ = ask(plain, "/similar", question)
		alone += found(answer, group)
	}
	if with < 8*groups || alone > 2*groups {
		t.Errorf("of the 10 nearest, %d of %d are of the picture's group; %d by the text alone", with, 10*groups, alone)
	}
	f := g.Following()
	text := "picture 3 word1 word2"
	v := s.vectors[3]
	v.NodeID = "new"
	f.Follow(&v)
	want, err := f.EmbedNodes([]string{"new"}, []string{text})
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := c.VectorsOf(t.Context(), []string{text})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Embed([]string{text}, vectors); err != nil || !slices.Equal(got.Vectors[0], want[0].Vector) {
		t.Errorf("a text has %+v, a node with the same text and vector %v: %v", got, want[0].Vector, err)
	}

	asked = nil
	several := `{"questions":[{"text":"picture 1 word1 word2"},{"id":"node-0001"},
		{"like":[{"text":"picture 2 word1 word2"},{"text":"picture 1 word1 word2"},{"text":"..."}]}]}`
	ask(h, "/similar", several)
	slices.Sort(asked[0])
	if len(asked) != 1 || !slices.Equal(asked[0], []string{"picture 1 word1 word2", "picture 2 word1 word2"}) {
		t.Errorf("two texts of three questions asked the model %q", asked)
	}
	asked = nil
	if code, answer, _ := ask(h, "/goes-with", `{"ids":["node-0001"],"text":"picture 1 word1 word2"}`); code != 400 ||
		len(asked) > 0 {
		t.Errorf("a question that has no text asked the model %q, and is answered with %d %s", asked, code, answer)
	}
	for _, tt := range []struct {
		name  string
		text  string
		fails error
	}{{"away", "picture 1 word1 word2", errors.New("away")}, {"refused", "word1 word2 unheard", nil}} {
		fails = tt.fails
		for path, body := range map[string]string{"/similar": `{"text":%q}`, "/embed": `{"texts":[%q]}`,
			OpenAIPath: `{"input":%q}`} {
			_, got, header := ask(h, path, fmt.Sprintf(body, tt.text))
			code, want, _ := ask(plain, path, fmt.Sprintf(body, tt.text))
			said := strings.Contains(got, `,"without":"image"`)
			if path == OpenAIPath {
				said = header == "image"
			}
			if code != 200 || !said || strings.Replace(got, `,"without":"image"`, "", 1) != want {
				t.Errorf("%s, %s: %.300s %s, want it as %.300s", tt.name, path, got, header, want)
			}
		}
	}
	fails, asked = nil, nil
	for name, h := range map[string]func() (*Catalog, http.Handler){
		"vectors of another input": func() (*Catalog, http.Handler) {
			return handler(&TextModel{View: "image", Input: 7, Ask: model.Ask}, nil)
		},
		"a view that weighs nothing": func() (*Catalog, http.Handler) {
			return handler(&TextModel{View: "other", Ask: model.Ask}, nil)
		},
		"a client that may not encode": func() (*Catalog, http.Handler) { return handler(model, errors.New("no")) },
	} {
		_, h := h()
		if _, answer, _ := ask(h, "/similar", `{"text":"picture 1 word1 word2"}`); len(asked) > 0 ||
			strings.Contains(answer, "without") {
			t.Errorf("%s: the model was asked %q, and the answer is %s", name, asked, answer)
		}
	}
	_, h = handler(&TextModel{View: "image"}, nil)
	_, answer, _ := ask(h, "/similar", `{"text":"picture 1 word1 word2"}`)
	if !strings.Contains(answer, `"without":"image"`) {
		t.Errorf("where nobody knows the model: %s", answer)
	}
}
