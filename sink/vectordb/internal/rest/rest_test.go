package rest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"giantstream/internal/canary"
)

// What a server repeats of a request that it refuses has no credentials in it.
func TestErrorsHaveNoCredentials(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "%s refused: %v", strings.Repeat("x", len(r.URL.Path)), r.Header)
	}))
	defer server.Close()
	secret := canary.New(1)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("me", secret)
	for _, header := range []http.Header{{"Api-Key": {secret}}, {"Authorization": {"Bearer " + secret}}, r.Header} {
		c := New(server.URL, header, nil)
		for length := 1; length < 500; length += 5 { // an error has the first 500 bytes of an answer
			err := c.Do(t.Context(), http.MethodGet, "/"+strings.Repeat("x", length), nil, nil)
			if Status(err) != http.StatusForbidden {
				t.Fatal(err)
			}
			if how := canary.Find(err.Error(), secret[:8]); how != "" {
				t.Fatalf("the secret shows %s in %v", how, err)
			}
		}
	}
}
