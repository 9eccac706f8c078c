package live

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// viewOf returns a view of a process with a status.
func viewOf(status func(context.Context) (any, error)) *View {
	return New(Process{Pipeline: "test", Metrics: prometheus.NewRegistry(),
		Unready: func(context.Context) string { return "" }, Index: func() *Index { return nil }, Status: status}, nil)
}

// A store that hangs keeps one read waiting, and the page is answered without.
func TestDocumentOfAStoreThatHangs(t *testing.T) {
	asked := make(chan struct{}, 100)
	v := viewOf(func(ctx context.Context) (any, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	stopped := make(chan struct{})
	defer close(stopped)
	v.StopReadsOn(stopped)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // whoever asks does not wait
	for range 5 {
		doc, err := v.document(ctx)
		if err != nil || doc.Pipeline != "test" || doc.Status != nil {
			t.Fatalf("%+v, %v", doc, err)
		}
	}
	<-asked
	if len(asked) > 0 {
		t.Errorf("%d reads at a time", 1+len(asked))
	}
}

// A status that panics is an error on the page, and the process goes on.
func TestDocumentOfAStatusThatPanics(t *testing.T) {
	v := viewOf(func(context.Context) (any, error) { panic("at the store") })
	doc, err := v.document(t.Context())
	if err != nil || !strings.Contains(doc.StatusError, "at the store") {
		t.Errorf("%+v, %v", doc, err)
	}
}

// The page lets nothing run or load but its own script and style.
func TestPagePolicy(t *testing.T) {
	answer := httptest.NewRecorder()
	ServePage(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if answer.Code != http.StatusOK || answer.Body.String() != pageHTML {
		t.Errorf("/: %d, %.100s", answer.Code, answer.Body)
	}
	policy := answer.Header().Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'sha256-", "style-src 'sha256-", "connect-src 'self'",
		"frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy lacks %s: %s", want, policy)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Count(pageHTML, "<script") != 1 ||
		strings.Count(pageHTML, "<style") != 1 {
		t.Error("the policy lets more run than the page's one script and one style")
	}
	// Nothing of an answer is put into the page as HTML, and nothing is fetched from elsewhere.
	for _, not := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "src=",
		"https://"} {
		if strings.Contains(pageHTML, not) {
			t.Errorf("the page has %s", not)
		}
	}
}
