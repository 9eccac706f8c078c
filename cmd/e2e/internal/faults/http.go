package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// HTTP passes S3 requests on to a server and lets some of them fail.
type HTTP struct {
	listener net.Listener
	server   *http.Server
	forward  *httputil.ReverseProxy

	// change is called around each request that may change an object.
	change func(r *http.Request, forward func())

	mu     sync.Mutex
	random *rand.Rand
	rates  Rates
}

// maxBody bounds a request that is held in memory while changes are watched.
const maxBody = 64 << 20

// Rates are the shares of requests that fail, 0 to 1.
type Rates struct {
	// Refused requests get 500 InternalError or 503 SlowDown, and have no effect.
	Refused float64
	// Lost requests are carried out, and the connection breaks before the answer.
	Lost float64
}

// NewHTTP listens on a free port of loopback. Which request fails is drawn from random.
func NewHTTP(ctx context.Context, upstream string, random *rand.Rand) (*HTTP, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("HTTP faults for %s: %w", upstream, err)
	}
	h := &HTTP{listener: l, random: random}
	h.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: upstream})
			r.Out.Host = r.In.Host // it is signed
		},
		// Either the client or the server has gone. Each side notices by itself.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	h.server = &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = h.server.Serve(l) }() // ends with Close
	return h, nil
}

// Addr is where it listens.
func (h *HTTP) Addr() string { return h.listener.Addr().String() }

// Fail sets the rates; the zero value lets everything through.
func (h *HTTP) Fail(r Rates) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rates = r
}

// Watch has each request that may change an object passed to change, which calls forward. The
// server is done with the request when forward returns. Call Watch before the first request.
func (h *HTTP) Watch(change func(r *http.Request, forward func())) { h.change = change }

// Close stops listening and breaks all connections.
func (h *HTTP) Close() error {
	if err := h.server.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// draw decides about one request.
func (h *HTTP) draw() (refuse, lose bool, status int, code string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch x := h.random.Float64(); {
	case x < h.rates.Refused/2:
		return true, false, http.StatusInternalServerError, "InternalError"
	case x < h.rates.Refused:
		return true, false, http.StatusServiceUnavailable, "SlowDown"
	case x < h.rates.Refused+h.rates.Lost:
		return false, true, 0, ""
	}
	return false, false, 0, ""
}

// ServeHTTP implements http.Handler.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	refuse, lose, status, code := h.draw()
	switch {
	case refuse:
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>injected</Message></Error>")
	case lose:
		h.pass(discard{http.Header{}}, r)
		panic(http.ErrAbortHandler)
	default:
		h.pass(w, r)
	}
}

// pass forwards a request. A request that may change an object is forwarded whole, or not at all if
// the client does not send all of it, and the server finishes it whether or not the client waits.
func (h *HTTP) pass(w http.ResponseWriter, r *http.Request) {
	if h.change == nil || r.Method == http.MethodGet || r.Method == http.MethodHead {
		h.forward.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	whole := r.WithContext(context.WithoutCancel(r.Context()))
	whole.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	h.change(whole, func() { h.forward.ServeHTTP(answer, whole) })
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // the client may have gone
}

// discard is a ResponseWriter for a response that is lost.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}
