package answering

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"giantstream/train/answer"
)

// Slow answers are logged with what they had to do, one a second at most; others are not, and neither is a wait that
// was asked for. Each question's filter counts in the metric.
func TestSlowAnswersAreLogged(t *testing.T) {
	var logged bytes.Buffer
	registry := prometheus.NewRegistry()
	o := newObserver(registry, slog.New(slog.NewTextHandler(&logged, nil)), time.Second)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/similar", nil)
	one := answer.Answered{Kind: "similar", Took: 3 * time.Second, Waited: 2500 * time.Millisecond, Status: 200,
		Asked: []answer.Asked{{K: 10, IDs: 2, Texts: 1, Results: 10,
			Filtered: &answer.Filtered{Attributes: []string{"price", "stock"}, Matched: 30, Places: 1000}},
			{K: 5, IDs: 1, Results: 2, Filtered: &answer.Filtered{Attributes: []string{"price"}, Matched: 2, Places: 1000}}}}
	if o.answered(r, one); logged.Len() > 0 {
		t.Errorf("a wait that was asked for is logged: %s", logged.String())
	}
	one.Waited = 0
	o.answered(r, one)
	for _, want := range []string{"level=WARN", "kind=similar", "status=200", "took=3s",
		"questions=2 k=10 ids=3 texts=1 " +
			`results=12 filtered_by="[price stock]" matched=32 of=2000`} {
		if !strings.Contains(logged.String(), want) {
			t.Errorf("no %q in %s", want, logged.String())
		}
	}
	logged.Reset()
	now := time.Now().Add(time.Minute)
	for _, after := range []time.Duration{0, 1, slowEvery - 1, slowEvery} {
		o.logSlow(context.Background(), &one, now.Add(after))
	}
	if lines := strings.Count(logged.String(), "\n"); lines != 2 ||
		!strings.HasSuffix(logged.String(), "slow_and_not_logged=2\n") {
		t.Errorf("of four in a second:\n%s", logged.String())
	}
	metrics := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(metrics, r)
	for _, want := range []string{`giantstream_http_answers_total{kind="similar",status="200",token=""} 2`,
		`giantstream_http_filter_selectivity_bucket{kind="similar",le="0.001"} 0`,
		`giantstream_http_filter_selectivity_bucket{kind="similar",le="0.01"} 2`,
		`giantstream_http_filter_selectivity_bucket{kind="similar",le="0.05"} 4`,
		`giantstream_http_filter_selectivity_sum{kind="similar"} 0.064`} {
		if !strings.Contains(metrics.Body.String(), want+"\n") {
			t.Errorf("no %q in\n%s", want, metrics.Body)
		}
	}
}

// The age of answers counts from the newest look at the commit log that has read all of it.
func TestTheAgeOfAnswers(t *testing.T) {
	registry, now := prometheus.NewRegistry(), time.Unix(1e9, 0)
	o := newObserver(registry, slog.New(slog.DiscardHandler), 0)
	o.follow(registry, func() time.Time { return now })
	age := func() float64 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "giantstream_http_answers_age_seconds" {
				return f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		return -1
	}
	now = now.Add(5 * time.Second)
	if got := age(); got != 5 {
		t.Errorf("before a look: %v", got)
	}
	o.read.Store(now.Add(-time.Second).UnixNano())
	if got := age(); got != 1 {
		t.Errorf("after it: %v", got)
	}
}
