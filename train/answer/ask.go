package answer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"giantstream/train/answer/filter"
)

// A question is asked in JSON (openapi.json describes it).
type question interface {
	// ask returns an answer to be encoded as JSON.
	ask(a *asking) (any, error)
}

// asking is what questions are asked.
type asking struct {
	*Catalog
	encodes func() error // says why texts may not be encoded, nil where they may
	body    []byte       // of the request
	asked   []Asked
	// explained is how many similar items get reasons.
	explained int
	// vectors are those of texts (VectorsOf), and without names the view that some lack, for OpenAIPath.
	vectors map[string][]float32
	without string
}

// Asked is what Handler tells of a question that it has answered: no id, no text, and no value of an attribute.
type Asked struct {
	K, Texts, IDs, Results int
	Filtered               *Filtered // nil without a filter
}

func (a *asking) note(k, texts, ids, results int, f *Filtered) {
	a.asked = append(a.asked, Asked{k, texts, ids, results, f})
}

// SimilarJSON answers a question as POST /similar takes it, with what is answered there.
func (c *Catalog) SimilarJSON(ctx context.Context, question []byte) (answer any, err error) {
	a := &asking{Catalog: c, body: question}
	a.askModel(ctx)
	return similarJSON(a, question)
}

// GoesWithJSON answers a question as POST /goes-with takes it, with what is answered there.
func (c *Catalog) GoesWithJSON(question []byte) (answer any, err error) {
	return goesWithJSON(&asking{Catalog: c}, question)
}

func similarJSON(a *asking, question []byte) (any, error) {
	return askOne(a, question, new(similarQuestion))
}

func goesWithJSON(a *asking, question []byte) (any, error) {
	return askOne(a, question, new(basketQuestion))
}

func askOne(a *asking, data []byte, q question) (any, error) {
	if err := decode(data, q); err != nil {
		return nil, err
	}
	return q.ask(a)
}

// failure is the answer to one of several questions that has none.
type failure struct {
	Status int    `json:"status"` // what the question alone would be answered with
	Error  string `json:"error"`
}

// askBody answers the question of a body, or its list of questions.
func askBody(one func(*asking, []byte) (any, error)) func(*asking, *http.Request) (any, error) {
	return func(a *asking, r *http.Request) (any, error) {
		var several struct {
			Questions []json.RawMessage `json:"questions"`
		}
		if _ = json.Unmarshal(a.body, &several); several.Questions == nil { // what is wrong with it, one will say
			return one(a, a.body)
		}
		if err := decode(a.body, &several); err != nil {
			return nil, err
		}
		if len(several.Questions) > maxQuestions {
			return nil, badRequest{fmt.Errorf("%d questions; there can be %d at most", len(several.Questions),
				maxQuestions)}
		}
		return struct {
			Answers []any `json:"answers"`
		}{askAll(r.Context(), a, several.Questions, one)}, r.Context().Err()
	}
}

func askAll(ctx context.Context, a *asking, questions []json.RawMessage,
	one func(*asking, []byte) (any, error)) []any {
	answers := make([]any, 0, len(questions))
	for _, q := range questions {
		if ctx.Err() != nil {
			return nil
		}
		answer, err := one(a, q)
		if err != nil {
			answer = failure{statusOf(err), err.Error()}
		}
		answers = append(answers, answer)
	}
	return answers
}

// wanted is what questions have in common.
type wanted struct {
	K           *int         `json:"k"`
	Offset      int          `json:"offset"`
	Where       *filter.Expr `json:"where"`
	Exclude     []string     `json:"exclude"`
	ExcludeSame []string     `json:"exclude_same"`
	Distinct    string       `json:"distinct"`
	Show        []string     `json:"show"`
	Explain     bool         `json:"explain"`
}

// Parameters are those in the query of the paths with GET, Lists those that may be given several times.
var (
	Parameters = []string{"k", "offset", "where", "exclude_same", "distinct", "show", "explain"}
	Lists      = []string{"exclude"}
)

// wantedOf reads the parameters of the query.
func wantedOf(query url.Values) (w wanted, err error) {
	number := func(name string) *int {
		text := query.Get(name)
		if text == "" {
			return nil
		}
		n, wrong := strconv.Atoi(text)
		if wrong != nil {
			err = badRequest{fmt.Errorf("%s: %q is no number", name, text)}
		}
		return &n
	}
	names := func(name string) []string {
		if text := query.Get(name); text != "" {
			return strings.Split(text, ",")
		}
		return nil
	}
	w = wanted{K: number("k"), Exclude: query["exclude"], ExcludeSame: names("exclude_same"),
		Distinct: query.Get("distinct"), Show: names("show")}
	if offset := number("offset"); offset != nil {
		w.Offset = *offset
	}
	if explain := query.Get("explain"); explain != "" && err == nil {
		if w.Explain, err = strconv.ParseBool(explain); err != nil {
			err = badRequest{fmt.Errorf("explain: %q is neither true nor false", explain)}
		}
	}
	if where := query.Get("where"); where != "" && err == nil {
		w.Where, err = filter.Parse(where)
	}
	return w, err
}

// check returns which answers are wanted.
func (w *wanted) check() (Wanted, error) {
	k := defCount
	if w.K != nil {
		k = *w.K
	}
	switch {
	case k < 1 || k > maxCount:
		return Wanted{}, badRequest{fmt.Errorf("k is %d; it can be from 1 to %d", k, maxCount)}
	case w.Offset < 0 || w.Offset+k > maxCount:
		return Wanted{}, badRequest{fmt.Errorf("offset is %d; it can be from 0 to %d with this k", w.Offset,
			maxCount-k)}
	case len(w.Exclude) > maxExclude:
		return Wanted{}, badRequest{fmt.Errorf("exclude has %d ids; there can be %d at most", len(w.Exclude),
			maxExclude)}
	case len(w.ExcludeSame) > maxSame:
		return Wanted{}, badRequest{fmt.Errorf("exclude_same has %d attributes; there can be %d at most",
			len(w.ExcludeSame), maxSame)}
	}
	return Wanted{K: k, Offset: w.Offset, Where: w.Where, Exclude: w.Exclude, ExcludeSame: w.ExcludeSame,
		Distinct: w.Distinct, Show: w.Show, Explain: w.Explain}, nil
}

// similarQuestion is the body of POST /similar.
type similarQuestion struct {
	ID   *string `json:"id"`
	Text *string `json:"text"`
	Like []liked `json:"like"`
	wanted
	Diversity float64 `json:"diversity"`
}

type liked struct {
	ID     *string  `json:"id"`
	Text   *string  `json:"text"`
	Weight *float64 `json:"weight"`
}

// reply is the answer to a similarQuestion.
type reply struct {
	Generation int64   `json:"generation"`
	Results    []match `json:"results"`
	Without    string  `json:"without,omitempty"`
}

type match struct {
	ID         string         `json:"id"`
	Cosine     float32        `json:"cosine"`
	Attributes map[string]any `json:"attributes,omitempty"`
	Because    *Parts         `json:"because,omitempty"`
	WhyNot     string         `json:"why_not,omitempty"`
}

func byID(a *asking, r *http.Request) (any, error) {
	w, err := wantedOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	q := similarQuestion{ID: new(strings.TrimPrefix(r.URL.Path, SimilarPath)), wanted: w}
	if text := r.URL.Query().Get("diversity"); text != "" {
		if q.Diversity, err = strconv.ParseFloat(text, 64); err != nil {
			return nil, badRequest{fmt.Errorf("diversity: %q is no number", text)}
		}
	}
	return q.ask(a)
}

func (q *similarQuestion) ask(asked *asking) (any, error) {
	w, err := q.check()
	if err != nil {
		return nil, err
	}
	w.Diversity = q.Diversity
	like, err := q.likes(asked.vectors)
	if err != nil {
		return nil, err
	}
	texts := 0
	for _, one := range like {
		if one.ID == "" {
			texts++
		}
	}
	if asked.encodes != nil && (texts > 0 || w.Explain) {
		if err := asked.encodes(); err != nil {
			return nil, forbidden{err}
		}
	}
	if w.Explain {
		if asked.explained += w.K; asked.explained > maxExplained {
			return nil, badRequest{fmt.Errorf("with explain, the questions of a request can ask for %d answers "+
				"together", maxExplained)}
		}
	}
	a, err := asked.Similar(like, w)
	if err != nil {
		return nil, err
	}
	asked.note(w.K, texts, len(like)-texts, len(a.Neighbours), a.Filtered)
	out := reply{a.Generation, make([]match, len(a.Neighbours)), a.Without}
	for i, n := range a.Neighbours {
		out.Results[i] = match(n)
	}
	return out, nil
}

// likes returns what is asked about, with the vectors of texts. An id or a text alone stands for a list of one.
func (q *similarQuestion) likes(vectors map[string][]float32) (all []Like, err error) {
	list := q.Like
	if q.ID != nil || q.Text != nil {
		if list != nil {
			return nil, badRequest{errors.New("like stands in the place of id and text: put them into the list")}
		}
		list = []liked{{ID: q.ID, Text: q.Text}}
	}
	if len(list) < 1 || len(list) > maxLike {
		return nil, badRequest{fmt.Errorf("similar to what? Give an id, a text, or like, a list of 1 to %d of them",
			maxLike)}
	}
	for i, one := range list {
		like := Like{Weight: 1}
		switch {
		case (one.ID == nil) == (one.Text == nil):
			return nil, badRequest{errors.New("ask for what is similar to an id or to a text: one of the two")}
		case one.ID != nil && *one.ID == "":
			return nil, unknown("")
		case one.ID != nil:
			like.ID = *one.ID
		case tooLong(*one.Text):
			field := "text"
			if q.Like != nil {
				field = fmt.Sprintf("like[%d].text", i)
			}
			return nil, longText(field, *one.Text)
		default:
			like.Text, like.Vector = *one.Text, vectors[*one.Text]
		}
		if one.Weight != nil {
			like.Weight = *one.Weight
		}
		if like.Weight == 0 || like.Weight < -maxWeight || like.Weight > maxWeight {
			return nil, badRequest{fmt.Errorf("weight is %g; it can be from %d to %d, and not 0", like.Weight,
				-maxWeight, maxWeight)}
		}
		all = append(all, like)
	}
	return all, nil
}

func tooLong(text string) bool { return len(text) > maxText }

// longText is the error of a field with a text that is too long.
func longText(field, text string) error {
	return badRequest{fmt.Errorf("%s has %d bytes; a text can have %d at most", field, len(text), maxText)}
}

// checkTexts refuses a list with a text that is too long.
func checkTexts(field string, texts []string) error {
	if i := slices.IndexFunc(texts, tooLong); i >= 0 {
		return longText(fmt.Sprintf("%s[%d]", field, i), texts[i])
	}
	return nil
}

// basketQuestion is the body of POST /goes-with.
type basketQuestion struct {
	IDs []string `json:"ids"`
	wanted
}

// complement is a node that goes with a basket.
type complement struct {
	ID         string         `json:"id"`
	Score      float64        `json:"score"`
	Support    int64          `json:"support"`
	Partner    string         `json:"partner,omitempty"`
	Because    *Because       `json:"because,omitempty"`
	Attributes map[string]any `json:"attributes,omitempty"`
}

func goesWithIDs(a *asking, r *http.Request) (any, error) {
	query := r.URL.Query()
	w, err := wantedOf(query)
	if err != nil {
		return nil, err
	}
	q := basketQuestion{IDs: query["id"], wanted: w}
	return q.ask(a)
}

func (q *basketQuestion) ask(asked *asking) (any, error) {
	w, err := q.check()
	if err != nil {
		return nil, err
	}
	if len(q.IDs) < 1 || len(q.IDs) > maxBasket {
		return nil, badRequest{fmt.Errorf("%d ids; there can be from 1 to %d", len(q.IDs), maxBasket)}
	}
	a, err := asked.GoesWith(q.IDs, w)
	if err != nil {
		return nil, err
	}
	asked.note(w.K, 0, len(q.IDs), len(a.Items), a.Filtered)
	out := struct {
		Generation int64        `json:"generation"`
		Results    []complement `json:"results"`
	}{a.Generation, make([]complement, len(a.Items))}
	for i, one := range a.Items {
		out.Results[i] = complement{one.ID, one.Score, one.Support, one.Partner, one.Because, one.Attributes}
	}
	return out, nil
}

// body reads the body of a request.
func body(r *http.Request) ([]byte, error) {
	data, err := io.ReadAll(r.Body)
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return nil, fmt.Errorf("the body has more than %d bytes: %w", tooLarge.Limit, err)
	}
	if err != nil {
		return nil, badRequest{fmt.Errorf("the body: %w", err)}
	}
	return data, nil
}
