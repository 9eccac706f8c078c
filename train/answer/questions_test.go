package answer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"giantstream/sink/memstore"
	"giantstream/train/answer/filter"
	"giantstream/train/generation"
	"giantstream/train/generation/generationtest"
	"giantstream/train/numeric"
)

// sizes is a catalog of someShop whose node i has the parent i/5, as a number, a string and in a list with its
// neighbour's, but for nodes from 200 on, which have none.
func sizes(t *testing.T) *world {
	t.Helper()
	s, log := someShop(), &history{nil}
	for i, r := range s.Source {
		attributes := ""
		if i < 200 {
			attributes = fmt.Sprintf(`{"parent":%d,"name":"p%d","on":%t,"at":"2026-01-%02dT00:00:00Z","in":["p%d","p%d"]}`,
				i/5, i/5, i%2 == 0, i/5%28+1, i/5, i/5+1)
		}
		(*log)[0] = append((*log)[0], node(r.NodeID, r.Text, attributes))
	}
	w := &world{store: &memstore.Store{}, shop: s}
	w.served = open(t, w.store, generationtest.Build(t, w.store, s, shopSettings()))
	w.Catalog = New(Options{Store: w.store, Log: log, Shards: 1, Complements: true, Exact: true,
		Attributes: []filter.Attribute{{Name: "parent", Type: filter.Number}, {Name: "name", Type: filter.String},
			{Name: "on", Type: filter.Boolean}, {Name: "at", Type: filter.Time}, {Name: "in", Type: filter.Strings}},
		Generation: func() *generation.Generation { return w.served }})
	w.update(t)
	return w
}

// values are those of an attribute that answers may not share, by the definition of sizes.
func values(id, attribute string) (all []int) {
	var i int
	if _, err := fmt.Sscanf(id, "node-%d", &i); err != nil {
		panic(err)
	}
	switch {
	case i >= 200:
		return nil
	case attribute == "on":
		return []int{i % 2}
	case attribute == "at":
		return []int{i / 5 % 28}
	case attribute == "in":
		return []int{i / 5, i/5 + 1}
	}
	return []int{i / 5}
}

func shares(a, b []int) bool {
	return slices.ContainsFunc(a, func(v int) bool { return slices.Contains(b, v) })
}

// wantedPlainly keeps of all answers, in order, those that are wanted.
func wantedPlainly(all, asked []string, w Wanted) (kept []string) {
	var seen []int
	for _, id := range all {
		same := slices.ContainsFunc(w.ExcludeSame, func(attribute string) bool {
			return slices.ContainsFunc(asked, func(other string) bool {
				return shares(values(id, attribute), values(other, attribute))
			})
		})
		if same || slices.Contains(w.Exclude, id) || w.Distinct != "" && shares(values(id, w.Distinct), seen) {
			continue
		}
		if w.Distinct != "" {
			seen = append(seen, values(id, w.Distinct)...)
		}
		kept = append(kept, id)
	}
	return kept[min(w.Offset, len(kept)):min(w.Offset+w.K, len(kept))]
}

var restrictions = []Wanted{
	{K: 7},
	{K: 7, Offset: 3},
	{K: 240, Offset: 230},
	{K: 20, Exclude: []string{"node-0001", "node-0003", "node-0007", "gone", "node-0003"}},
	{K: 9, ExcludeSame: []string{"parent"}},
	{K: 9, Offset: 2, ExcludeSame: []string{"on", "in"}, Exclude: []string{"node-0015"}},
	{K: 4, Distinct: "parent"},
	{K: 25, Offset: 4, Distinct: "name"},
	{K: 240, Distinct: "parent", ExcludeSame: []string{"in"}},
	{K: 3, Distinct: "on"},
	{K: 240, Distinct: "at", Exclude: []string{"node-0001", "node-0201"}},
}

// What is answered is what remains of all answers.
func TestWantedIsWhatRemains(t *testing.T) {
	w := sizes(t)
	for _, asked := range [][]string{{"node-0002"}, {"node-0017", "node-0022", "node-0100"}, {"node-0201"}} {
		var like []Like
		for _, id := range asked {
			like = append(like, Like{ID: id, Weight: 1})
		}
		all, err := w.Similar(like, Wanted{K: 1000})
		if err != nil || len(all.Neighbours) < 200 {
			t.Fatal(len(all.Neighbours), err)
		}
		basket, err := w.GoesWith(asked, Wanted{K: 1000})
		if err != nil || len(basket.Items) < 200 {
			t.Fatal(len(basket.Items), err)
		}
		scores := map[string]float64{}
		for _, one := range basket.Items {
			scores[one.ID] = one.Score
		}
		for _, want := range restrictions {
			a, err := w.Similar(like, want)
			got := ids(a.Neighbours, func(n Neighbour) string { return n.ID })
			plain := wantedPlainly(ids(all.Neighbours, func(n Neighbour) string { return n.ID }), asked, want)
			if err != nil || !slices.Equal(got, plain) {
				t.Errorf("similar to %v, %+v: %v, want %v, %v", asked, want, got, plain, err)
			}
			b, err := w.GoesWith(asked, want)
			got = ids(b.Items, func(c Complement) string { return c.ID })
			plain = wantedPlainly(ids(basket.Items, func(c Complement) string { return c.ID }), asked, want)
			rest := want
			rest.Offset = 0
			if err != nil || len(got) != len(plain) || !slices.Equal(wantedPlainly(got, asked, rest), got) {
				t.Errorf("goes with %v, %+v: %v, want %v, %v", asked, want, got, plain, err)
				continue
			}
			for i, one := range b.Items { // the index finds what is near by texts within its precision
				if math.Abs(one.Score-scores[plain[i]]) > 0.0005 {
					t.Errorf("goes with %v, %+v: answer %d is %+v, want %s, %g", asked, want, i, one, plain[i],
						scores[plain[i]])
				}
			}
		}
	}
}

func ids[T any](all []T, id func(T) string) (out []string) {
	for _, one := range all {
		out = append(out, id(one))
	}
	return out
}

// A text of which the encoder knows nothing is answered with its words, as many as a line shows and cut.
func TestWordsThatTheEncoderDoesNotKnow(t *testing.T) {
	w := sizes(t)
	for text, want := range map[string]string{
		"nothing known": `it knows nothing of "nothing", "known"`,
		"zz\x1b[31m":    `it knows nothing of "zz\x1b[31m"`,
		" ":             "it knows nothing of an empty text",
		strings.Repeat("ж", 30) + strings.Repeat(" жж", 11): `"` + strings.Repeat("ж", 20) + `…"` +
			strings.Repeat(`, "жж"`, 9) + ", 2 words more",
	} {
		_, err := w.Similar([]Like{{Text: text, Weight: 1}}, Wanted{K: 1})
		if !errors.Is(err, ErrNoText) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Of several, the cosines are those with the weighted sum of unit vectors.
func TestSimilarToSeveral(t *testing.T) {
	w := sizes(t)
	like := []Like{{ID: "node-0002", Weight: 1}, {Text: w.shop.Source[60].Text, Weight: 2.5},
		{ID: "node-0120", Weight: -0.5}, {ID: "node-0200", Weight: 7}, {Text: "nothing known", Weight: 1}}
	records, err := w.served.EmbedTexts([]string{like[1].Text}, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	x, sum := w.now.Load().index, make([]float32, len(records[0].Vector))
	v := make([]float32, len(sum))
	for i, one := range like[:3] {
		if copy(v, records[0].Vector); i != 1 {
			x.Vector(one.ID, v)
		}
		length := math.Sqrt(float64(numeric.Dot(v, v)))
		for k := range sum {
			sum[k] += float32(one.Weight * float64(v[k]) / length)
		}
	}
	got, err := w.Similar(like, Wanted{K: 1000})
	if err != nil || len(got.Neighbours) < 200 {
		t.Fatal(len(got.Neighbours), err)
	}
	for i, n := range got.Neighbours {
		if !x.Vector(n.ID, v) || math.Abs(numeric.Cosine(v, sum)-float64(n.Cosine)) > 0.002 {
			t.Errorf("%+v has the cosine %.4f", n, numeric.Cosine(v, sum))
		}
		if i > 0 && n.Cosine > got.Neighbours[i-1].Cosine || n.ID == "node-0002" || n.ID == "node-0120" {
			t.Errorf("answer %d is %+v", i, n)
		}
	}
	for _, c := range []struct {
		like []Like
		want error
	}{
		{[]Like{{ID: "node-0002", Weight: 1}, {ID: "node-0002", Weight: -1}}, ErrCancel},
		{[]Like{{ID: "node-0200", Weight: 1}}, ErrNoText},
		{[]Like{{ID: "node-0200", Weight: 1}, {Text: "nothing known", Weight: 1}}, ErrNoText},
		{[]Like{{ID: "node-0002", Weight: 1}, {ID: "gone", Weight: 1}}, ErrUnknown},
	} {
		if _, err := w.Similar(c.like, Wanted{K: 1}); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.like, err, c.want)
		}
	}
}

// The parts add up to the score bit for bit, and a basket without a node has the score without what that node said.
func TestReasonsAddUp(t *testing.T) {
	w := newWorld(t, someShop(), nil)
	basket := []string{"node-0001", "node-0009", "node-0060", "node-0200"}
	got, err := w.GoesWith(basket, Wanted{K: 1000, Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	less, err := w.GoesWith(basket[1:], Wanted{K: 1000, Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	without, removed := map[string]Complement{}, 0
	for _, one := range less.Items {
		without[one.ID] = one
	}
	for _, one := range got.Items {
		score, support := 0.0, int64(0)
		for _, r := range one.Because.Orders {
			score, support = score+r.Score, support+r.Support
		}
		if score+one.Because.Text != one.Score || support != one.Support {
			t.Fatalf("%+v", one)
		}
		if len(one.Because.Orders) == 0 || one.Because.Orders[0].ID != "node-0001" {
			continue
		}
		removed++
		after, said := without[one.ID], one.Because.Orders[0].Score
		if math.Abs((one.Score-one.Because.Text)-(after.Score-after.Because.Text)-said) > 1e-9 {
			t.Errorf("without node-0001, %+v is %+v", one, after)
		}
	}
	if removed == 0 {
		t.Error("node-0001 says nothing")
	}
	if got, err = w.GoesWith(basket, Wanted{K: 9}); err != nil || got.Items[0].Because != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestQuestionsOverHTTP(t *testing.T) {
	w := sizes(t)
	h := Handler(w.Catalog, Serving{})
	similar := func(rest string) string {
		return `{"like":[{"id":"node-0002"},{"id":"node-0060","weight":-0.5}]` + rest + "}"
	}
	for _, c := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"POST", "/similar", similar(`,"k":3,"distinct":"parent","exclude_same":["parent"],"show":["parent"]`), 200,
			`"parent":`},
		{"GET", "/similar/node-0002?exclude=node-0001&exclude=gone&exclude_same=parent,on&distinct=name&offset=1&k=2", "",
			200, `"results":[{"id":"node-0`},
		{"GET", "/goes-with?id=node-0002&explain=true&k=1", "", 200, `"because":{"orders":[{"id":"node-0002","score":`},
		{"POST", "/goes-with", `{"ids":["node-0002"],"explain":true,"distinct":"parent","offset":2}`, 200, `"text":0.`},
		{"POST", "/goes-with", `{"ids":["node-0201"],"explain":true,"k":1}`, 200, `"because":{"orders":[],"text":0.`},
		{"POST", "/similar", `{"like":[{"id":"node-0002"},{"id":"node-0002","weight":-1}]}`, 422, "cancel each other"},
		{"POST", "/similar", `{"like":[{"id":"node-0002","weight":0}]}`, 400, "weight is 0"},
		{"POST", "/similar", `{"like":[{"id":"node-0002","weight":1e9}]}`, 400, "weight is 1e+09"},
		{"POST", "/similar", `{"like":[{"id":"node-0002","weight":1e999}]}`, 400, "the question: "},
		{"POST", "/similar", `{"like":[{"id":"node-0002","text":"x"}]}`, 400, "one of the two"},
		{"POST", "/similar", `{"like":[]}`, 400, "similar to what?"},
		{"POST", "/similar", `{"like":[{"text":"x"}],"id":"node-0002"}`, 400, "put them into the list"},
		{"POST", "/similar", `{"id":""}`, 404, "no such node"},
		{"POST", "/similar", similar(`,"offset":995`), 400, "offset is 995; it can be from 0 to 990"},
		{"POST", "/similar", similar(`,"distinct":"paren"`), 400, "Did you mean parent?"},
		{"POST", "/similar", similar(`,"distinct":"in"`), 400, `"error":"in has lists`},
		{"POST", "/goes-with", `{"ids":["node-0002"],"exclude_same":["size"]}`, 400, `there is no attribute \"size\"`},
		{"GET", "/similar/node-0002?offset=x", "", 400, `offset: \"x\" is no number`},
		{"GET", "/goes-with?id=node-0002&explain=why", "", 400, "neither true nor false"},
		{"POST", "/similar", `{"questions":[],"k":5}`, 400, `unknown field \"k\"`},
		{"POST", "/similar", `{"questions":[` + strings.Repeat("{},", 256) + `{}]}`, 400, "257 questions"},
		{"POST", "/similar", `{"questions":[]}`, 200, `{"answers":[]}`},
	} {
		if code, body := askGoesWith(t, h, c.method, c.path, c.body); code != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s %s %.200s: %d %.300s, want %d %s", c.method, c.path, c.body, code, body, c.code, c.want)
		}
	}
}

// Several questions have the answers that each has alone.
func TestSeveralQuestions(t *testing.T) {
	w := sizes(t)
	h := Handler(w.Catalog, Serving{})
	for path, questions := range map[string][]string{
		"/similar": {`{"id":"node-0002","k":3}`, `{"id":"gone"}`, `{"text":"topic1word1","distinct":"parent"}`,
			`{"id":"node-0002","k":"3"}`, `7`, `{"id":"node-0200"}`},
		"/goes-with": {`{"ids":["node-0002"],"explain":true}`, `{"ids":[]}`, `{"ids":["node-0009","node-0060"],"k":2}`},
	} {
		var got struct{ Answers []json.RawMessage }
		code, body := askGoesWith(t, h, "POST", path, `{"questions":[`+strings.Join(questions, ",")+`]}`)
		if err := json.Unmarshal([]byte(body), &got); code != 200 || err != nil || len(got.Answers) != len(questions) {
			t.Fatalf("%s: %d %.300s", path, code, body)
		}
		for i, q := range questions {
			code, alone := askGoesWith(t, h, "POST", path, q)
			if code != 200 {
				alone = fmt.Sprintf(`{"status":%d,%s`, code, strings.TrimPrefix(alone, "{"))
			}
			if string(got.Answers[i]) != strings.TrimSpace(alone) {
				t.Errorf("%s %s: %.300s, alone %.300s", path, q, got.Answers[i], alone)
			}
		}
	}
	_, short := askGoesWith(t, h, "GET",
		"/similar/node-0002?k=5&exclude_same=parent&where="+url.QueryEscape("on=true"), "")
	_, long := askGoesWith(t, h, "POST", "/similar",
		`{"like":[{"id":"node-0002"}],"k":5,"exclude_same":["parent"],"where":"on=true"}`)
	if short != long {
		t.Errorf("%s and %s", short, long)
	}
}

// No question makes the catalog panic, and every one that is answered has answers that it allows.
func FuzzQuestions(f *testing.F) {
	f.Add([]byte(`{"like":[{"id":"node-0002"},{"text":"topic1word1","weight":-0.5}],"k":3,"distinct":"parent"}`))
	f.Add([]byte(`{"ids":["node-0002"],"explain":true,"exclude_same":["in"],"offset":2,"exclude":["node-0001"]}`))
	f.Add([]byte(`{"id":"node-0201","where":"parent<9","show":["name"],"k":5}`))
	f.Add([]byte(`{"id":"node-0201"}]`))
	var once sync.Once
	var w *world
	f.Fuzz(func(t *testing.T, question []byte) {
		once.Do(func() { w = sizes(t) })
		var q wanted
		for _, ask := range []func(*asking, []byte) (any, error){similarJSON, goesWithJSON} {
			answer, err := ask(&asking{Catalog: w.Catalog}, question)
			if err != nil {
				continue
			}
			data, err := json.Marshal(answer)
			var got struct{ Results []match }
			if err = errors.Join(err, json.Unmarshal(data, &got), json.Unmarshal(question, &q)); err != nil {
				t.Fatal(err)
			}
			if q.K != nil && len(got.Results) > *q.K {
				t.Fatalf("%d answers", len(got.Results))
			}
			var asked similarQuestion
			if json.Unmarshal(question, &asked) == nil {
				like, _ := asked.likes(nil)
				for _, one := range like { // a model has been asked about each text
					if one.Text != "" && !slices.Contains(textsOf(question), one.Text) {
						t.Fatalf("the text %q is overlooked", one.Text)
					}
				}
			}
			seen := map[string]bool{}
			for _, one := range got.Results {
				if seen[one.ID] || slices.Contains(q.Exclude, one.ID) {
					t.Fatalf("%s is answered", one.ID)
				}
				seen[one.ID] = true
			}
		}
	})
}

// A text may be as long as a node's. One that is longer is refused by its field, over HTTP and from a file, and no
// model is asked for it.
func TestTextsOfQuestionsAreBounded(t *testing.T) {
	w := sizes(t)
	h := Handler(w.Catalog, Serving{})
	for _, n := range []int{maxText, maxText + 1} {
		text := strings.Repeat("topic1word1 ", maxText/12+1)[:n]
		for _, c := range []struct{ path, body, field string }{
			{"/similar", `{"text":%q}`, "text"},
			{"/similar", `{"like":[{"id":"node-0001"},{"text":%q}]}`, "like[1].text"},
			{"/similar", `{"questions":[{"id":"node-0001"},{"text":%q}]}`, "text"},
			{"/embed", `{"texts":["a",%q]}`, "texts[1]"},
			{OpenAIPath, `{"input":%q}`, "input[0]"},
			{OpenAIPath, `{"input":["a","b",%q]}`, "input[2]"},
		} {
			want := ""
			if n > maxText {
				want = fmt.Sprintf("%s has %d bytes; a text can have %d at most", c.field, n, maxText)
			}
			code, body := askGoesWith(t, h, "POST", c.path, fmt.Sprintf(c.body, text))
			inList := strings.Contains(c.body, "questions")
			if (code == 400) != (want != "" && !inList) || !strings.Contains(body, want) ||
				strings.Contains(body, "at most") != (want != "") {
				t.Errorf("%s with %d bytes: %d %.300s, want %q", c.path, n, code, body, want)
			}
			if c.path != "/similar" || inList {
				continue
			}
			_, err := w.SimilarJSON(t.Context(), fmt.Appendf(nil, c.body, text))
			if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
				t.Errorf("from a file: %v, want %q", err, want)
			}
		}
	}
}
