package answer

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"giantstream/train/answer/filter"
	"giantstream/train/generation"
)

// What a request may ask for.
const (
	maxBody    = 1 << 20 // bytes
	maxTexts   = 256
	maxText    = 256 << 10 // bytes of one: what a node's text has at most unless ingest.limits says otherwise
	maxCount   = 1000
	defCount   = 10
	maxBasket  = 2000 // nodes: an order of more says nothing of what goes together
	maxLike    = 100  // nodes and texts that are added up
	maxExclude = 1000 // ids
	maxSame    = 16   // attributes
	maxWeight  = 1000 // of one of these, positive or negative

	maxQuestions = 256             // in a request
	maxWaiting   = 64              // requests for each that is computed
	maxWait      = 5 * time.Second // for a request's turn
	maxBodies    = 256 << 20       // bytes of the bodies that are in memory
)

//go:embed openapi.json
var openAPI []byte

// handler answers questions over HTTP (openapi.json describes them).
type handler struct {
	catalog *Catalog
	Serving
	// turns has a place for each request that is computed, waiting one for each that waits besides.
	turns, waiting chan struct{}
	// bodies has the bytes of those that are in memory.
	bodies *semaphore.Weighted
}

// Serving says how Handler serves. All may be nil.
type Serving struct {
	// Ends returns where the topics end that records of the graph are sent to, by topic and partition, for EndOffset.
	Ends func(context.Context) (map[string][]int64, error)
	// Encodes returns why a request may not have its texts encoded, which gets the status 403. It is not asked of POST
	// /embed and OpenAIPath, all of whose requests have texts: the caller refuses these.
	Encodes func(*http.Request) error
	// Observe is called after each answer.
	Observe func(*http.Request, Answered)
}

// Answered is what Handler tells of an answer.
type Answered struct {
	Kind   string // similar, goes-with, embed
	Took   time.Duration
	Waited time.Duration // of Took, for the client: for its body, and what it named by min_offset
	Status int
	Asked  []Asked // the questions that were answered
}

// goesWith is the kind of questions about baskets.
const goesWith = "goes-with"

// SimilarPath is the path before the id in GET /similar/{id}.
const SimilarPath = "/similar/"

// Handler answers GET /similar/{id}, POST /similar, GET and POST /goes-with, POST /embed, POST OpenAIPath and GET
// /openapi.json. It computes one request at a time per processor. Further requests wait a moment, and those beyond
// maxWaiting per processor get the status 503. What follows SimilarPath in the path is the id, slashes and dots
// included. The caller refuses parameters of the query other than Parameters and Lists with GET, diversity of GET
// /similar, id of GET /goes-with, and FreshParameters.
func Handler(c *Catalog, s Serving) http.Handler {
	n := runtime.GOMAXPROCS(0)
	h := &handler{catalog: c, Serving: s, turns: make(chan struct{}, n), waiting: make(chan struct{}, n*maxWaiting),
		bodies: semaphore.NewWeighted(maxBodies)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(openAPI) // the client may be gone
	})
	mux.Handle("POST /similar", h.handle("similar", askBody(similarJSON)))
	mux.Handle("GET /goes-with", h.handle(goesWith, goesWithIDs))
	mux.Handle("POST /goes-with", h.handle(goesWith, askBody(goesWithJSON)))
	mux.Handle("POST /embed", h.handle("embed", embed))
	mux.Handle("POST "+OpenAIPath, h.handleAs("embed", openAI, maxInputBody, openAIError))
	byID := h.handle("similar", byID)
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

// forbidden is an error that only an administrator can mend.
type forbidden struct{ error }

var errBusy = errors.New("too many requests at once, try again in a moment")

// handle returns the HTTP handler of a function that answers requests of one kind.
func (h *handler) handle(kind string, answer func(*asking, *http.Request) (any, error)) http.Handler {
	return h.handleAs(kind, answer, maxBody, plainError)
}

func plainError(err error, _ int) any { return map[string]string{"error": err.Error()} }

// Refuse answers a request to a path that Handler does not get, as Handler answers errors there.
func Refuse(path string) func(w http.ResponseWriter, message string, status int) {
	explain := plainError
	if path == OpenAIPath {
		explain = openAIError
	}
	return func(w http.ResponseWriter, message string, status int) {
		write(w, status, explain(errors.New(message), status))
	}
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}

// handleAs is handle with bodies of `most` bytes at most, and with errors of a shape.
func (h *handler) handleAs(kind string, answer func(*asking, *http.Request) (any, error), most int64,
	explain func(err error, status int) any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		r.Body = http.MaxBytesReader(w, r.Body, most)
		var body any
		a := &asking{Catalog: h.catalog}
		if h.Encodes != nil {
			a.encodes = func() error { return h.Encodes(r) }
		}
		// The body comes before the turn: a client that sends slowly holds up nobody.
		free, err := h.load(a, r, most)
		defer free()
		if err == nil {
			err = h.fresh(w, r)
		}
		waited := time.Since(began)
		if err == nil {
			// A model is asked before the turn, too: who waits for it computes nothing.
			err = h.inTurn(r.Context(), func() {
				if kind != goesWith { // whose questions have no texts
					a.askModel(r.Context())
				}
			}, func() (err error) {
				body, err = answer(a, r)
				return err
			})
		}
		status := http.StatusOK
		if err != nil {
			status = statusOf(err)
			body = explain(err, status)
		}
		if status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		if a.without != "" {
			w.Header().Set(WithoutHeader, a.without)
		}
		write(w, status, body)
		if h.Observe != nil {
			h.Observe(r, Answered{Kind: kind, Took: time.Since(began), Waited: waited, Status: status, Asked: a.asked})
		}
	})
}

// load reads the body of a request. What it takes up is free once free is called.
func (h *handler) load(a *asking, r *http.Request, most int64) (free func(), err error) {
	size := r.ContentLength
	if size < 0 || size > most {
		size = most
	}
	if !h.bodies.TryAcquire(size) {
		return func() {}, errBusy
	}
	a.body, err = body(r)
	return func() { h.bodies.Release(size) }, err
}

// inTurn runs f when it is its turn, if that comes soon enough after before.
func (h *handler) inTurn(ctx context.Context, before func(), f func() error) error {
	select {
	case h.waiting <- struct{}{}:
		defer func() { <-h.waiting }()
	default:
		return errBusy
	}
	before()
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
	case errors.As(err, new(forbidden)):
		return http.StatusForbidden
	case errors.Is(err, ErrUnknown):
		return http.StatusNotFound
	case errors.Is(err, ErrNoText), errors.Is(err, ErrCancel):
		return http.StatusUnprocessableEntity
	case errors.Is(err, generation.ErrNoOrders):
		return http.StatusConflict
	case errors.Is(err, ErrEmpty), errors.Is(err, ErrTexts), errors.Is(err, errBusy), errors.As(err, new(errBehind)),
		errors.Is(err, errEnds), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

func embed(a *asking, _ *http.Request) (any, error) {
	var q struct {
		Texts []string `json:"texts"`
	}
	// Whatever the media type of the body is said to be: curl -d says that of a form.
	if err := decode(a.body, &q); err != nil {
		return nil, err
	}
	if len(q.Texts) < 1 || len(q.Texts) > maxTexts {
		return nil, badRequest{fmt.Errorf("texts has %d; there can be from 1 to %d", len(q.Texts), maxTexts)}
	}
	if err := checkTexts("texts", q.Texts); err != nil {
		return nil, err
	}
	out, err := a.Embed(q.Texts, a.vectors)
	if err != nil {
		return nil, err
	}
	a.note(0, len(q.Texts), 0, len(q.Texts), nil)
	return struct {
		Generation int64       `json:"generation"`
		Dim        int         `json:"dim"`
		Embeddings [][]float32 `json:"embeddings"`
		Without    string      `json:"without,omitempty"`
	}{out.Generation, out.Dim, out.Vectors, out.Without}, nil
}
