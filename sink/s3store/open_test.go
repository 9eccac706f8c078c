package s3store_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
