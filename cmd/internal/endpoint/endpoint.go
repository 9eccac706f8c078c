// Package endpoint is what the HTTP servers of all processes share: who may read, how health is said, and bounds.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
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

// Answer responds with 200, or with 503 and the reason.
func Answer(w http.ResponseWriter, good, bad string) {
	if bad != "" {
		http.Error(w, "not "+good+": "+bad, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, good)
}
