// Package endpoint is what the HTTP servers of all processes share: who may read, how health is said, and bounds.
package endpoint

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/config"
)

// Bounds of the HTTP server, whose clients ask for a page now and then.
const (
	readTime   = 10 * time.Second // of a request, headers included
	writeTime  = 30 * time.Second // of an answer
	idleTime   = 2 * time.Minute  // of a connection between requests
	headerSize = 16 << 10         // bytes
)

// Serve answers requests at an address until ctx ends, over TLS if there is a certificate, of which it has metrics.
func Serve(ctx context.Context, h config.HTTP, registry prometheus.Registerer, log *slog.Logger,
	handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadTimeout: readTime, WriteTimeout: writeTime,
		IdleTimeout: idleTime, MaxHeaderBytes: headerSize, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
	serve := server.Serve
	if h.TLS != (config.HTTPTLS{}) {
		c, err := newCertificates(h.TLS, log, time.Now)
		if err == nil {
			err = c.register(registry)
		}
		if err != nil {
			return err
		}
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				pair, _ := c.current()
				return pair, nil
			}}
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", h.Listen)
	if err != nil {
		return fmt.Errorf("http.listen: %w; choose another address (--set http.listen=:9465), or \"\" for none", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // metrics have no work in flight to save
	defer stop()
	if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
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
