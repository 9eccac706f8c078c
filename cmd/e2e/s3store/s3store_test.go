package s3store_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"giantstream/internal/freeport"
	"giantstream/sink"
	"giantstream/sink/s3store"
	"giantstream/sink/storetest"
)

// The keys and the region are those of package s3server, which is not linked here.
const (
	bucket    = "catalog"
	accessKey = "giantstream"
	secretKey = "giantstream-dev"
	region    = "us-east-1"
)

// endpoint of the server that TestMain starts.
var endpoint string

// TestMain runs the tests against an S3 server, which keeps its objects in a temporary directory. It is a process of
// its own, so that the race detector watches the client alone, and the server need not be compiled for it.
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
	program := filepath.Join(root, "s3")
	build := exec.CommandContext(context.Background(), "go", "build", "-ldflags=-w", "-o", program, "../s3")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w\n%s", err, out)
	}
	server := exec.CommandContext(context.Background(), program, "-attached", "-dir", filepath.Join(root, "data"),
		"-listen", endpoint, "-bucket", bucket)
	server.Stderr = os.Stderr
	input, err := server.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := server.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := server.Start(); err != nil {
		return nil, err
	}
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			if lines.Text() == "ready" {
				close(ready)
			}
		}
	}()
	stop = func() {
		_ = input.Close()
		<-ended
		_ = server.Wait() // it has served
		_ = os.RemoveAll(root)
	}
	select {
	case <-ready:
	case <-ended:
		stop()
		return nil, fmt.Errorf("it ends before it is ready: %s", server.ProcessState)
	}
	return stop, nil
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
