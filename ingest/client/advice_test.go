package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"giantstream/ingest/client"
)

// An error of brokers that refuse a connection names the fields to look at, whichever of the two libraries asks.
func TestRefusedConnectionsSayWhatToLookAt(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	known := x509.NewCertPool()
	known.AddCert(server.Certificate())
	with := func(c *tls.Config) string {
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(c))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cluster.Close)
		return cluster.ListenAddrs()[0]
	}
	for what, test := range map[string]struct {
		broker string
		tls    *tls.Config
		want   string
	}{
		"authority": {with(&tls.Config{Certificates: server.TLS.Certificates}), &tls.Config{}, "kafka.tls.ca_file"},
		"client certificate": {with(&tls.Config{Certificates: server.TLS.Certificates,
			ClientAuth: tls.RequireAnyClientCert}), &tls.Config{RootCAs: known}, "may want a client certificate"},
		"another client certificate": {with(&tls.Config{Certificates: server.TLS.Certificates,
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool()}),
			&tls.Config{RootCAs: known, Certificates: server.TLS.Certificates}, "refuse kafka.tls.cert_file"},
		"wants TLS": {closing(t), nil, "see kafka.tls and kafka.sasl"},
		"no TLS":    {closing(t), &tls.Config{RootCAs: known}, "or want a password: set kafka.tls.enabled: false"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c, err := client.New(client.Options{Brokers: []string{test.broker}, TLS: test.tls})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			// The errors may pass, and are told once the time is over.
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			_, identified := c.Identify(ctx, "nodes")
			ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			for by, err := range map[string]error{"kafka-go": c.EnsureTopics(ctx,
				client.TopicSpec{Name: "nodes", Partitions: 1}), "franz-go": identified} {
				if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "*Client") {
					t.Errorf("%s: %v, want %q", by, err, test.want)
				}
			}
		})
	}
}

// closing is a listener that closes each connection once it is asked for something.
func closing(t *testing.T) (addr string) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1<<16)) // else the connection is reset
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}
