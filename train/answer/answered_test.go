package answer

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"giantstream/internal/canary"
)

// An Answered counts what was asked and what filters left, and has nothing of the request's texts, ids and
// values, whether it was answered or not.
func TestWhatIsToldOfAnAnswer(t *testing.T) {
	w, _ := pricedShop(t)
	var told []Answered
	h := Handler(w.Catalog, Serving{Observe: func(_ *http.Request, a Answered) { told = append(told, a) }})
	nodes, secret := len(w.shop.Source), canary.New(1)
	text := w.shop.Source[1].Text + " " + secret
	priced := &Filtered{[]string{"price"}, 4, nodes}
	for _, c := range []struct {
		method, path, body string
		want               Answered
	}{
		{"POST", "/similar", `{"text":"` + text + `","k":3}`,
			Answered{Kind: "similar", Status: 200, Asked: []Asked{{K: 3, Texts: 1, Results: 3}}}},
		{"POST", "/similar", `{"like":[{"id":"node-0001"},{"text":"` + text + `"}],"k":9,"exclude":["` + secret +
			`"],"where":"price<4 and brand!=\"` + secret + `\" or price<4"}`,
			Answered{Kind: "similar", Status: 200, Asked: []Asked{{9, 1, 1, 3, &Filtered{[]string{"brand", "price"}, 4,
				nodes}}}}},
		{"GET", "/goes-with?id=node-0001&k=1&where=price%3C4", "",
			Answered{Kind: goesWith, Status: 200, Asked: []Asked{{1, 0, 1, 1, priced}}}},
		{"POST", "/similar", `{"questions":[{"id":"node-0001","k":2},{"id":"` + secret + `"},
			{"id":"node-0001","k":1,"where":"price<4"}]}`,
			Answered{Kind: "similar", Status: 200, Asked: []Asked{{2, 0, 1, 2, nil}, {1, 0, 1, 1, priced}}}},
		{"POST", "/embed", `{"texts":["` + text + `","` + secret + `"]}`,
			Answered{Kind: "embed", Status: 200, Asked: []Asked{{Texts: 2, Results: 2}}}},
		{"POST", OpenAIPath, `{"input":"` + text + `"}`,
			Answered{Kind: "embed", Status: 200, Asked: []Asked{{Texts: 1, Results: 1}}}},
		{"GET", "/similar/" + secret, "", Answered{Kind: "similar", Status: 404}},
		{"POST", "/similar", `{"id":"node-0001","where":"` + secret + ` exists","show":["` + secret + `"]}`,
			Answered{Kind: "similar", Status: 400}},
		{"POST", "/similar", `{"` + secret, Answered{Kind: "similar", Status: 400}},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body))
		h.ServeHTTP(httptest.NewRecorder(), r)
		got := told[len(told)-1]
		if got.Took <= 0 || got.Waited < 0 || got.Waited > got.Took {
			t.Errorf("%s %s: took %v, waited %v", c.method, c.path, got.Took, got.Waited)
		}
		got.Took, got.Waited = 0, 0
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %s %s:\n%+v, want\n%+v", c.method, c.path, c.body, toldOf(&got), toldOf(&c.want))
		}
		if how := canary.Find(toldOf(&got), secret); how != "" {
			t.Errorf("%s %s tells %s", c.method, c.path, how)
		}
	}
}

// Clients that send their bodies slowly hold up nobody: others are answered meanwhile, until what bodies may take up of
// memory is taken; then requests with a body are told to come again, and those without one are answered. In the end all
// are answered.
func TestSlowBodiesHoldUpNobody(t *testing.T) {
	w := newWorld(t, someShop(), nil)
	h := Handler(w.Catalog, Serving{})
	const most = maxBodies / maxInputBody
	ends, codes := make([]*io.PipeWriter, most), make(chan int)
	for i := range ends {
		var body *io.PipeReader
		body, ends[i] = io.Pipe()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, OpenAIPath, body)
		go func() {
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, r)
			codes <- answer.Code
		}()
		if _, err := io.WriteString(ends[i], "{"); err != nil { // which returns when it is read
			t.Fatal(err)
		}
		want := 200
		if i == most-1 {
			want = 503
		}
		if code, answer := askGoesWith(t, h, "POST", "/similar", `{"id":"node-0001"}`); code != want {
			t.Fatalf("beside %d slow bodies: %d %s", i+1, code, answer)
		}
		if code, answer := askGoesWith(t, h, "GET", "/similar/node-0001", ""); code != 200 {
			t.Fatalf("without a body, beside %d: %d %s", i+1, code, answer)
		}
	}
	for _, end := range ends {
		if _, err := io.WriteString(end, `"input":"words"}`); err != nil || end.Close() != nil {
			t.Fatal(err)
		}
		if code := <-codes; code != 200 {
			t.Errorf("a slow body is answered by %d", code)
		}
	}
	if code, answer := askGoesWith(t, h, "POST", "/similar", `{"id":"node-0001"}`); code != 200 {
		t.Errorf("after all: %d %s", code, answer)
	}
}

func toldOf(a *Answered) string {
	text := fmt.Sprintf("%+v", *a)
	for _, q := range a.Asked {
		if q.Filtered != nil {
			text += fmt.Sprintf(" %+v", *q.Filtered)
		}
	}
	return text
}
