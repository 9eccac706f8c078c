package answer

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	"giantstream/train/answer/filter"
	"giantstream/train/generation"
)

// What a request may ask for.
const (
	maxBody    = 1 << 20 // bytes
	maxTexts   = 256
	maxCount   = 1000
	defCount   = 10
	maxBasket  = 2000            // nodes: an order of more says nothing of what goes together
	maxWaiting = 64              // requests for each that is computed
	maxWait    = 5 * time.Second // for a request's turn
)

//go:embed openapi.json
var openAPI []byte

// handler answers questions over HTTP (openapi.json describes them).
type handler struct {
	catalog *Catalog
	// turns has a place for each request that is computed, waiting one for each that waits besides.
	turns, waiting chan struct{}
	observe        func(kind string, took time.Duration, status int)
}

// SimilarPath is the path before the id in GET /similar/{id}.
const SimilarPath = "/similar/"

// Handler answers GET /similar/{id}, POST /similar, GET and POST /goes-with, POST /embed and GET /openapi.json. It
// computes one request at a time per processor. Further requests wait a moment, and those beyond maxWaiting per
// processor get the status 503. observe, if not nil, is called after each answer. What follows SimilarPath in the path
// is the id, slashes and dots included; parameters of the query other than k, where and show, and id of /goes-with, are
// for the caller to refuse.
func Handler(c *Catalog, observe func(kind string, took time.Duration, status int)) http.Handler {
	n := runtime.GOMAXPROCS(0)
	h := &handler{catalog: c, observe: observe,
		turns: make(chan struct{}, n), waiting: make(chan struct{}, n*maxWaiting)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(openAPI) // the client may be gone
	})
	mux.Handle("POST /similar", h.handle("similar", h.similar))
	mux.Handle("GET /goes-with", h.handle(goesWith, h.goesWithIDs))
	mux.Handle("POST /goes-with", h.handle(goesWith, h.goesWith))
	mux.Handle("POST /embed", h.handle("embed", h.embed))
	byID := h.handle("similar", h.byID)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		get := r.Method == http.MethodGet || r.Method == http.MethodHead
		if get && strings.HasPrefix(r.URL.Path, SimilarPath) {
			byID.ServeHTTP(w, r) // past the mux, which redirects a path such as /similar//x to another id
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// badRequest is an error that the client can mend.
type badRequest struct{ error }

var errBusy = errors.New("too many requests at once, try again in a moment")

// handle returns the HTTP handler of a function that answers requests of one kind.
func (h *handler) handle(kind string, answer func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		var body any
		err := h.inTurn(r.Context(), func() (err error) {
			body, err = answer(r)
			return err
		})
		status := http.StatusOK
		if err != nil {
			status = statusOf(err)
			body = map[string]string{"error": err.Error()}
		}
		if status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body) // the client may be gone
		if h.observe != nil {
			h.observe(kind, time.Since(began), status)
		}
	})
}

// inTurn runs f when it is its turn, if that comes soon enough.
func (h *handler) inTurn(ctx context.Context, f func() error) error {
	select {
	case h.waiting <- struct{}{}:
		defer func() { <-h.waiting }()
	default:
		return errBusy
	}
	late := time.NewTimer(maxWait)
	defer late.Stop()
	select {
	case h.turns <- struct{}{}:
		defer func() { <-h.turns }()
	case <-late.C:
		return errBusy
	case <-ctx.Done():
		return ctx.Err()
	}
	return f()
}

func statusOf(err error) int {
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return http.StatusRequestEntityTooLarge
	case errors.As(err, new(badRequest)), errors.As(err, new(*filter.Error)):
		return http.StatusBadRequest
	case errors.Is(err, ErrUnknown):
		return http.StatusNotFound
	case errors.Is(err, ErrNoText):
		return http.StatusUnprocessableEntity
	case errors.Is(err, generation.ErrNoOrders):
		return http.StatusConflict
	case errors.Is(err, ErrEmpty), errors.Is(err, errBusy), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// question is the body of POST /similar.
type question struct {
	ID   *string `json:"id"`
	Text *string `json:"text"`
	wanted
}

// wanted is what questions have in common.
type wanted struct {
	K     *int         `json:"k"`
	Where *filter.Expr `json:"where"`
	Show  []string     `json:"show"`
}

// wantedOf reads the parameters of the query.
func wantedOf(r *http.Request) (w wanted, err error) {
	query := r.URL.Query()
	if k := query.Get("k"); k != "" {
		n, err := strconv.Atoi(k)
		if err != nil {
			return w, badRequest{fmt.Errorf("k: %q is no number", k)}
		}
		w.K = &n
	}
	if show := query.Get("show"); show != "" {
		w.Show = strings.Split(show, ",")
	}
	if where := query.Get("where"); where != "" {
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
	if k < 1 || k > maxCount {
		return Wanted{}, badRequest{fmt.Errorf("k is %d; it can be from 1 to %d", k, maxCount)}
	}
	return Wanted{K: k, Where: w.Where, Show: w.Show}, nil
}

// reply is the answer to a question.
type reply struct {
	Generation int64   `json:"generation"`
	Results    []match `json:"results"`
}

type match struct {
	ID         string         `json:"id"`
	Cosine     float32        `json:"cosine"`
	Attributes map[string]any `json:"attributes,omitempty"`
}

func (h *handler) byID(r *http.Request) (any, error) {
	w, err := wantedOf(r)
	if err != nil {
		return nil, err
	}
	return h.ask(question{ID: new(strings.TrimPrefix(r.URL.Path, SimilarPath)), wanted: w})
}

func (h *handler) similar(r *http.Request) (any, error) {
	var q question
	if err := read(r, &q); err != nil {
		return nil, err
	}
	return h.ask(q)
}

func (h *handler) ask(q question) (any, error) {
	w, err := q.check()
	if err != nil {
		return nil, err
	}
	var a Nearest
	switch {
	case (q.ID == nil) == (q.Text == nil):
		return nil, badRequest{errors.New("ask for the neighbours of an id or of a text: one of the two")}
	case q.ID != nil:
		a, err = h.catalog.ByID(*q.ID, w)
	default:
		a, err = h.catalog.ByText(*q.Text, w)
	}
	if err != nil {
		return nil, err
	}
	out := reply{a.Generation, make([]match, len(a.Neighbours))}
	for i, n := range a.Neighbours {
		out.Results[i] = match(n)
	}
	return out, nil
}

// goesWith is the kind of questions about baskets.
const goesWith = "goes-with"

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
	Attributes map[string]any `json:"attributes,omitempty"`
}

func (h *handler) goesWithIDs(r *http.Request) (any, error) {
	w, err := wantedOf(r)
	if err != nil {
		return nil, err
	}
	return h.askBasket(basketQuestion{r.URL.Query()["id"], w})
}

func (h *handler) goesWith(r *http.Request) (any, error) {
	var q basketQuestion
	if err := read(r, &q); err != nil {
		return nil, err
	}
	return h.askBasket(q)
}

func (h *handler) askBasket(q basketQuestion) (any, error) {
	w, err := q.check()
	if err != nil {
		return nil, err
	}
	if len(q.IDs) < 1 || len(q.IDs) > maxBasket {
		return nil, badRequest{fmt.Errorf("%d ids; there can be from 1 to %d", len(q.IDs), maxBasket)}
	}
	a, err := h.catalog.GoesWith(q.IDs, w)
	if err != nil {
		return nil, err
	}
	out := struct {
		Generation int64        `json:"generation"`
		Results    []complement `json:"results"`
	}{a.Generation, make([]complement, len(a.Items))}
	for i, c := range a.Items {
		out.Results[i] = complement{c.ID, c.Score, c.Support, c.Partner, c.Attributes}
	}
	return out, nil
}

func (h *handler) embed(r *http.Request) (any, error) {
	var q struct {
		Texts []string `json:"texts"`
	}
	if err := read(r, &q); err != nil {
		return nil, err
	}
	if len(q.Texts) < 1 || len(q.Texts) > maxTexts {
		return nil, badRequest{fmt.Errorf("texts has %d; there can be from 1 to %d", len(q.Texts), maxTexts)}
	}
	vectors, dim, number, err := h.catalog.Embed(q.Texts)
	if err != nil {
		return nil, err
	}
	return struct {
		Generation int64       `json:"generation"`
		Dim        int         `json:"dim"`
		Embeddings [][]float32 `json:"embeddings"`
	}{number, dim, vectors}, nil
}

// read reads a JSON object from the body, whatever its media type is said to be (curl -d says that of a form), and
// refuses fields that it does not know.
func read(r *http.Request, to any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		if errors.As(err, new(*http.MaxBytesError)) {
			return fmt.Errorf("the body has more than %d bytes: %w", maxBody, err)
		}
		return badRequest{fmt.Errorf("the body: %w", err)}
	}
	if d.More() {
		return badRequest{errors.New("the body has more than one JSON value")}
	}
	return nil
}
