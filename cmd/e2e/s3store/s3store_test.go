package s3store_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"giantstream/cmd/e2e/internal/s3server"
	"giantstream/internal/freeport"
	"giantstream/sink"
	"giantstream/sink/s3store"
	"giantstream/sink/storetest"
)

const (
	bucket    = "catalog"
	accessKey = s3server.AccessKey
	secretKey = s3server.SecretKey
)

// endpoint of the server that TestMain starts.
var endpoint string

// TestMain runs the tests against an S3 server in this process, which keeps its objects in a
// temporary directory. There can be one per process.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		stop, err := startServer()
		if err != nil {
			fmt.Fprintln(os.Stderr, "start the S3 server:", err)
			return 1
		}
		defer stop()
		return m.Run()
	}())
}

func startServer() (stop func(), err error) {
	root, err := os.MkdirTemp("", "s3store-test-*")
	if err != nil {
		return nil, err
	}
	if endpoint, err = freeport.Addr(context.Background()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- s3server.Serve(ctx, root, endpoint, bucket, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-done:
		cancel()
		return nil, err
	}
	return func() {
		cancel()
		<-done
		_ = os.RemoveAll(root)
	}, nil
}

func options() s3store.Options {
	return s3store.Options{Endpoint: endpoint, Region: "us-east-1", PathStyle: true, Insecure: true,
		AccessKey: accessKey, SecretKey: secretKey}
}

var stores atomic.Int64 // gives each store a prefix of its own

func open(t *testing.T, opts s3store.Options) *s3store.Store {
	t.Helper()
	s, err := s3store.Open(t.Context(), bucket, fmt.Sprintf("test/%d", stores.Add(1)), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) sink.Store { return open(t, options()) })
}

func TestOpenErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		bucket string
		change func(*s3store.Options)
		want   string
	}{
		{"no such bucket", "none-such", func(*s3store.Options) {}, "create the bucket"},
		{"wrong secret", bucket, func(o *s3store.Options) { o.SecretKey = "wrong-secret" }, "check the credentials"},
		{"half a key", bucket, func(o *s3store.Options) { o.SecretKey = "" }, "given together"},
		{"scheme", bucket, func(o *s3store.Options) { o.Endpoint = "ftp://host" }, "must be http or https"},
		{"CA file", bucket, func(o *s3store.Options) { o.CAFile = "none.pem" }, "CA file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := options()
			tt.change(&opts)
			_, err := s3store.Open(t.Context(), tt.bucket, "", opts)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want an error with %q", err, tt.want)
			}
			if msg := err.Error(); strings.Contains(msg, secretKey) || strings.Contains(msg, "wrong-secret") {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}

func TestOptionsKeepSecrets(t *testing.T) {
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if s := fmt.Sprintf(format, options()); strings.Contains(s, secretKey) || strings.Contains(s, accessKey) {
			t.Errorf("%s shows a key: %s", format, s)
		}
	}
}

// proxy forwards to the server and lets a test meddle.
func proxy(t *testing.T, meddle func(r *http.Request) (intercept http.HandlerFunc)) s3store.Options {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if h := meddle(r); h != nil {
				h(w, r)
				return
			}
			forward(w, r)
		})}
	go srv.Serve(listener) //nolint:errcheck // ends with Close
	t.Cleanup(func() { _ = srv.Close() })
	opts := options()
	opts.Endpoint = listener.Addr().String()
	return opts
}
