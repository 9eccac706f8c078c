package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"giantstream/cmd/internal/cli/command"
)

// A store that accepts requests and never answers ends status within --timeout, with words.
func TestStatusGivesUpOnAStoreThatHangs(t *testing.T) {
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(over)
	var out, errs bytes.Buffer
	code := Run(t.Context(), []string{"status", "--store", "s3://bucket/prefix", "--timeout", "200ms",
		"--set", "s3.endpoint=" + server.URL, "--set", "s3.access_key=a", "--set", "s3.secret_key=b"}, &out, &errs, nil)
	if code != command.ExitFailed || out.Len() > 0 ||
		!strings.Contains(errs.String(), "no answer from the store within 200ms; is it reachable? --timeout waits longer") {
		t.Errorf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
}
