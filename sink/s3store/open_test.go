package s3store_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"giantstream/sink"
	"giantstream/sink/s3store"
)

func TestAStoreThatCannotBeOpenedIsNamed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s3store.Open(ctx, "bucket", "catalog", s3store.Options{Endpoint: "http://127.0.0.1:1"})
	if err == nil || !strings.Contains(err.Error(), "s3://bucket/catalog") {
		t.Errorf("got %v", err)
	}
}

// Amazon answers a request with an expired token by 400, which has no body where the request was HEAD.
func TestExpiredCredentialsAreNamed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer server.Close()
	_, err := s3store.Open(t.Context(), "bucket", "catalog", s3store.Options{Endpoint: server.URL, Region: "us-east-1",
		AccessKey: "key", SecretKey: "secret"})
	if err == nil || !strings.Contains(err.Error(), "credentials may have expired") {
		t.Errorf("got %v", err)
	}
}

// A proxy before the store that has lost its way for a moment says nothing about objects.
func TestPagesOfProxiesAreNoAbsence(t *testing.T) {
	var lost atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case lost.Add(-1) >= 0:
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte("<html><body>no such route</body></html>"))
		case strings.HasSuffix(r.URL.Path, "/gone"):
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusNotFound)
		default:
			w.Header().Set("Last-Modified", "Mon, 02 Mar 2026 10:00:00 GMT")
			w.Header().Set("ETag", `"1"`)
		}
	}))
	defer server.Close()
	s, err := s3store.Open(t.Context(), "bucket", "", s3store.Options{Endpoint: server.URL, Region: "us-east-1",
		AccessKey: "key", SecretKey: "secret", PathStyle: true})
	if err != nil {
		t.Fatal(err)
	}
	lost.Store(1)
	if _, err := s.Open(t.Context(), "there"); err != nil {
		t.Errorf("after a page of a proxy: %v", err)
	}
	if _, err := s.Open(t.Context(), "gone"); !errors.Is(err, sink.ErrNotFound) {
		t.Errorf("an object that is not there: %v", err)
	}
}

// The answer to a list breaks off twice, and the list goes on behind the last key that has come.
func TestAListThatBreaksOffGoesOn(t *testing.T) {
	const head = `<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>`
	object := func(key string) string {
		return "<Contents><Key>" + key + "</Key><Size>1</Size><LastModified>2026-03-02T10:00:00Z</LastModified></Contents>"
	}
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("list-type") == "" {
			return // the bucket
		}
		asked = append(asked, r.URL.Query().Get("start-after"))
		w.Header().Set("Content-Type", "application/xml")
		if len(asked) < 3 {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(head + object("a")))
			return // the server closes the connection
		}
		_, _ = w.Write([]byte(head + object("a") + object("b") + "</ListBucketResult>"))
	}))
	defer server.Close()
	s, err := s3store.Open(t.Context(), "bucket", "", s3store.Options{Endpoint: server.URL, Region: "us-east-1",
		AccessKey: "key", SecretKey: "secret", PathStyle: true})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for info, err := range s.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	if strings.Join(keys, " ") != "a b" || len(asked) != 3 {
		t.Errorf("keys %q after %q", keys, asked)
	}
}
