// Package endpoint is what the HTTP servers of all processes share: who may read, how health is said, and bounds.
package endpoint

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// Bounds of the HTTP server, whose clients ask for a page now and then.
const (
	readTime   = 10 * time.Second // of a request, headers included
	writeTime  = 30 * time.Second // of an answer
	idleTime   = 2 * time.Minute  // of a connection between requests
	headerSize = 16 << 10         // bytes
)

// Serve answers requests at an address until ctx ends.
func Serve(ctx context.Context, listen string, handler http.Handler) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("http.listen: %w; choose another address, or \"\" for none", err)
	}
	server := &http.Server{Handler: handler, ReadTimeout: readTime, WriteTimeout: writeTime,
		IdleTimeout: idleTime, MaxHeaderBytes: headerSize}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // metrics have no work in flight to save
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Authorized passes on requests that bear the token; "" passes on all. The comparison takes the same
// time wherever the tokens differ, and of whatever length they are.
func Authorized(token string, next http.Handler) http.Handler {
	if token == "" {
		return next
	}
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		have := sha256.Sum256([]byte(given))
		if subtle.ConstantTimeCompare(have[:], want[:]) != 1 || !bearer {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "this page asks for the token of http.token", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Answer responds with 200, or with 503 and the reason.
func Answer(w http.ResponseWriter, good, bad string) {
	if bad != "" {
		http.Error(w, "not "+good+": "+bad, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, good)
}
