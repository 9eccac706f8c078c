package vectordbtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// ErrLost is what a client sees of a request that is lost, of one whose answer is, and of one that is late.
var ErrLost = errors.New("the connection is lost")

// Wire is a bad connection to a database, which all processes of a test share. It loses requests, loses answers, and
// delivers writes of rows after later ones: any time later, half of them not before two more processes have opened the
// index, and some only at the end.
type Wire struct {
	mu         sync.Mutex
	rnd        *rand.Rand
	lose, slow float64
	session    int
	late       []lateWrite
}

// lateWrite is a write of rows that waits for a session.
type lateWrite struct {
	send  func()
	after int
}

// slow is the share of the writes of rows that are late. They have to be many: most do no harm even where nothing
// refuses them, since their table goes, or their rows are written again.
const slow = 0.1

// NewWire returns a wire that loses a share of the requests.
func NewWire(rnd *rand.Rand, lose float64) *Wire { return &Wire{rnd: rnd, lose: lose, slow: slow} }

// Call sends a request by do, or returns ErrLost. late, which is nil unless the request writes rows, sends it when
// nobody waits for the answer any more.
func (w *Wire) Call(do func() error, late func()) error {
	w.mu.Lock()
	lost, answered, slow := w.rnd.Float64() < w.lose, w.rnd.IntN(2) == 0, late != nil && w.rnd.Float64() < w.slow
	if slow {
		w.late = append(w.late, lateWrite{late, w.session + 2*w.rnd.IntN(2)})
	}
	w.mu.Unlock()
	switch {
	case slow:
	case !lost:
		return do()
	case answered:
		if err := do(); err != nil {
			return err
		}
	}
	return ErrLost
}

// open says that another process opens the index.
func (w *Wire) open() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.session++
}

// deliver delivers a late write now and then, or all of them in any order.
func (w *Wire) deliver(all bool) {
	if w == nil {
		return
	}
	w.mu.Lock()
	w.rnd.Shuffle(len(w.late), func(i, j int) { w.late[i], w.late[j] = w.late[j], w.late[i] })
	now, stay := w.late, []lateWrite(nil)
	if !all {
		now = nil
		some := w.rnd.IntN(10) == 0
		for _, l := range w.late {
			if some && len(now) == 0 && l.after <= w.session {
				now = append(now, l)
			} else {
				stay = append(stay, l)
			}
		}
	}
	w.late = stay
	w.mu.Unlock()
	for _, l := range now {
		l.send()
	}
}

// calm ends the losses. What is late stays so.
func (w *Wire) calm() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lose, w.slow = 0, 0
}

// Proxy puts the wire before a server of HTTP, and returns the address to use in place of the server's. writes says
// which requests write rows.
func (w *Wire) Proxy(t *testing.T, server string, writes func(*http.Request) bool) string {
	proxy := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(to, err.Error(), http.StatusBadRequest)
			return
		}
		header, method, url := r.Header.Clone(), r.Method, server+r.URL.RequestURI()
		header.Del("Accept-Encoding") // the transport asks for what it can unpack
		send := func(ctx context.Context) (status int, answer []byte, err error) {
			out, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
			if err != nil {
				return 0, nil, err
			}
			out.Header = header
			res, err := http.DefaultClient.Do(out)
			if err != nil {
				return 0, nil, err
			}
			defer res.Body.Close()
			answer, err = io.ReadAll(res.Body)
			return res.StatusCode, answer, err
		}
		var status int
		var answer []byte
		var late func()
		if writes(r) {
			late = func() { _, _, _ = send(context.WithoutCancel(t.Context())) } // nobody waits for the outcome
		}
		err = w.Call(func() (err error) { status, answer, err = send(r.Context()); return err }, late)
		if err != nil {
			http.Error(to, err.Error(), http.StatusServiceUnavailable)
			return
		}
		to.WriteHeader(status)
		_, _ = to.Write(answer) // a client that is gone has its answer lost
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL
}
