package answering

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/cmd/internal/endpoint"
	"giantstream/train/answer"
)

// observer counts and logs answers.
type observer struct {
	count, refused       *prometheus.CounterVec
	seconds, selectivity *prometheus.HistogramVec
	// read is when the newest look at the commit log began that has read all of it, in nanoseconds since 1970.
	read atomic.Int64

	log  *slog.Logger
	slow time.Duration // 0 for no log

	mu       sync.Mutex
	logged   time.Time
	unlogged int
}

// slowEvery is how often a slow answer is logged at most.
const slowEvery = time.Second

func newObserver(registry prometheus.Registerer, log *slog.Logger, slow time.Duration) *observer {
	o := &observer{log: log, slow: slow}
	o.count = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "giantstream_http_answers_total",
		Help: "Answers to questions about similar items, by kind, HTTP status and the token's name."},
		[]string{"kind", "status", "token"})
	o.refused = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "giantstream_http_refused_total",
		Help: "Requests refused for their token, or for lack of one, by the token's name and HTTP status."},
		[]string{"token", "status"})
	o.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "giantstream_http_answer_seconds",
		Help:    "How long those answers took, waiting included.",
		Buckets: []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .5, 1, 5}}, []string{"kind"})
	o.selectivity = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "giantstream_http_filter_selectivity",
		Help:    "Share of the index's places that the filter of a question left, by kind.",
		Buckets: []float64{.0001, .001, .01, .05, .1, .25, .5, .75, 1}}, []string{"kind"})
	registry.MustRegister(o.count, o.refused, o.seconds, o.selectivity)
	return o
}

// follow makes the metric of how old the answers may be. now is the clock of read.
func (o *observer) follow(registry prometheus.Registerer, now func() time.Time) {
	o.read.Store(now().UnixNano())
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "giantstream_http_answers_age_seconds",
		Help: "What was committed longer ago than this is in the answers."}, func() float64 {
		return now().Sub(time.Unix(0, o.read.Load())).Seconds()
	}))
}

func (o *observer) refuse(name string, status int) {
	o.refused.WithLabelValues(name, strconv.Itoa(status)).Inc()
}

func (o *observer) answered(r *http.Request, one answer.Answered) {
	o.count.WithLabelValues(one.Kind, strconv.Itoa(one.Status), endpoint.NameOf(r.Context())).Inc()
	o.seconds.WithLabelValues(one.Kind).Observe(one.Took.Seconds())
	for _, q := range one.Asked {
		if f := q.Filtered; f != nil && f.Places > 0 {
			o.selectivity.WithLabelValues(one.Kind).Observe(float64(f.Matched) / float64(f.Places))
		}
	}
	// A wait that the request asked for is not slow.
	if o.slow > 0 && one.Took-one.Waited >= o.slow {
		o.logSlow(r.Context(), &one, time.Now())
	}
}

// logSlow logs an answer without what was asked about: sums over the questions of the request, and the names of
// attributes that filters compare.
func (o *observer) logSlow(ctx context.Context, one *answer.Answered, now time.Time) {
	o.mu.Lock()
	more := o.unlogged
	if now.Sub(o.logged) < slowEvery {
		o.unlogged++
		o.mu.Unlock()
		return
	}
	o.logged, o.unlogged = now, 0
	o.mu.Unlock()

	var sum answer.Asked
	var filtered answer.Filtered
	for _, q := range one.Asked {
		sum.K, sum.Results = max(sum.K, q.K), sum.Results+q.Results
		sum.IDs, sum.Texts = sum.IDs+q.IDs, sum.Texts+q.Texts
		if f := q.Filtered; f != nil {
			filtered.Attributes = append(filtered.Attributes, f.Attributes...)
			filtered.Matched, filtered.Places = filtered.Matched+f.Matched, filtered.Places+f.Places
		}
	}
	slices.Sort(filtered.Attributes)
	o.log.WarnContext(ctx, "an answer was slow", "kind", one.Kind, "status", one.Status, "took", one.Took,
		"waited", one.Waited, "token", endpoint.NameOf(ctx), "questions", len(one.Asked), "k", sum.K, "ids", sum.IDs,
		"texts", sum.Texts, "results", sum.Results, "filtered_by", slices.Compact(filtered.Attributes),
		"matched", filtered.Matched, "of", filtered.Places, "slow_and_not_logged", more)
}
