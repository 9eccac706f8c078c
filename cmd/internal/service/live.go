package service

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/cmd/internal/buildinfo"
	"giantstream/ingest/decode"
	"giantstream/stream/commitlog"
	"giantstream/train"
)

// live answers / and /status.json: what status and /metrics say, for a page that is looked at while it changes.
type live struct {
	service *Service
	// read returns what 'giantstream status' shows; nil for nothing.
	read    func(context.Context, *Service) (any, error)
	started time.Time
	// until is closed when the service stops, and with it a read.
	until <-chan struct{}

	mu       sync.Mutex
	reading  chan struct{} // closed when the read in progress ends; nil for none
	status   any           // of the last read that succeeded
	at       time.Time     // when that read ended
	took     time.Duration
	ready    string // why the process is not ready, "" if it is
	readErr  error
	progress progress
	windows  []windowNote // newest last
}

const (
	// livePause is the least time between two reads of the status; a slow read is followed by a pause of
	// liveShare times what it took, so that a page that somebody looks at costs the store little.
	livePause = 2 * time.Second
	liveShare = 10
	// liveTime bounds a read, liveWait how long an answer waits for it.
	liveTime = 20 * time.Second
	liveWait = 5 * time.Second
	// liveWindows is how many committed windows the page shows.
	liveWindows = 60
)

// windowNote is a window that this process has committed.
type windowNote struct {
	Shard     int       `json:"shard"`
	Seq       int64     `json:"seq"`
	Rows      int64     `json:"rows"`
	Committed time.Time `json:"committed"`
}

// liveStatus is the document at /status.json.
type liveStatus struct {
	Pipeline string    `json:"pipeline"`
	Version  string    `json:"version"`
	Process  string    `json:"process"`
	Roles    []string  `json:"roles"`
	Started  time.Time `json:"started"`
	Now      time.Time `json:"now"`
	// Unready says why /readyz answers 503, "" if it does not.
	Unready string `json:"unready,omitempty"`
	// Serve is the index of similar items, nil without the role or before it is ready.
	Serve *liveIndex `json:"serve,omitempty"`
	// Progress is the long work that this process does, nil for none.
	Progress *liveProgress `json:"progress,omitempty"`
	// Windows are the newest that this process has committed, newest last.
	Windows []windowNote `json:"windows"`
	// Reasons explain the codes of dead letters.
	Reasons map[string]string `json:"reasons"`
	// Metrics are those of /metrics that are giantstream's own, by name.
	Metrics map[string][]liveMetric `json:"metrics"`
	// Status is what 'giantstream status --json' prints, as of StatusAt. StatusError says why it is not newer.
	Status      any       `json:"status,omitempty"`
	StatusAt    time.Time `json:"status_at,omitzero"`
	StatusError string    `json:"status_error,omitempty"`
}

type liveIndex struct {
	Generation int64 `json:"generation"`
	Nodes      int   `json:"nodes"`
}

type liveProgress struct {
	Stage   string  `json:"stage"`
	Done    int64   `json:"done"`
	Total   int64   `json:"total,omitempty"` // 0 if it is not known
	Seconds float64 `json:"seconds"`
	// Building: the stage is one of a generation's build.
	Building bool `json:"building"`
}

// liveMetric is a metric with one set of labels. A histogram has its quantiles since the process began, and its
// buckets (how many observations are at most so large), from which a page computes those of the last minutes.
type liveMetric struct {
	Labels  map[string]string `json:"labels,omitempty"`
	Value   float64           `json:"value"`
	Count   uint64            `json:"count,omitempty"`
	P50     *float64          `json:"p50,omitempty"`
	P99     *float64          `json:"p99,omitempty"`
	Buckets []liveBucket      `json:"buckets,omitempty"`
}

type liveBucket struct {
	AtMost float64 `json:"at_most"`
	Count  uint64  `json:"count"`
}

// committed notes a window.
func (l *live) committed(m *commitlog.Manifest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.windows = append(l.windows, windowNote{m.Shard, m.Seq, m.Rows, m.Created})
	if len(l.windows) > 2*liveWindows {
		l.windows = slices.Clone(l.windows[len(l.windows)-liveWindows:])
	}
}

// refresh reads the status, if the last one is old, and waits a moment for it. A store that hangs keeps one read
// waiting and no more.
func (l *live) refresh(ctx context.Context) {
	l.mu.Lock()
	if l.reading == nil && time.Since(l.at) >= max(livePause, liveShare*l.took) {
		l.reading = make(chan struct{})
		go l.readStatus(l.reading)
	}
	reading := l.reading
	l.mu.Unlock()
	if reading == nil {
		return
	}
	late := time.NewTimer(liveWait)
	defer late.Stop()
	select {
	case <-reading:
	case <-late.C:
	case <-ctx.Done():
	}
}

func (l *live) readStatus(done chan struct{}) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), liveTime)
	defer cancel()
	go func() {
		select {
		case <-l.until:
			cancel()
		case <-ctx.Done():
		}
	}()
	status, ready, err := l.look(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readErr = err; err == nil {
		l.status = status
	}
	l.ready, l.at, l.took = ready, time.Now(), time.Since(began)
	l.reading = nil
	close(done)
}

// look reads the status, and whether the process is ready. A fault of the program is an error here, and ends
// nothing else that the process does.
func (l *live) look(ctx context.Context) (status any, unready string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("reading the status has panicked: %v\n%s", v, debug.Stack())
		}
	}()
	unready = l.service.unready(ctx)
	if l.read == nil {
		return nil, unready, nil
	}
	status, err = l.read(ctx, l.service)
	return status, unready, err
}

// document is what /status.json answers now.
func (l *live) document(ctx context.Context) (*liveStatus, error) {
	l.refresh(ctx)
	s := l.service
	out := &liveStatus{Pipeline: s.cfg.Pipeline, Version: buildinfo.Read().String(), Process: writerName(),
		Roles: strings.Split(s.roles.String(), ","), Started: l.started, Now: time.Now(), Reasons: map[string]string{}}
	for _, code := range decode.Codes() {
		out.Reasons[string(code)] = code.Explain()
	}
	if s.catalog != nil {
		if size, err := s.catalog.Size(); err == nil {
			out.Serve = &liveIndex{size.Generation, size.Nodes}
		}
	}
	var err error
	if out.Metrics, err = gather(s.metrics.registry); err != nil {
		return nil, err
	}
	out.Progress = l.progress.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := out.Progress; p != nil {
		for _, m := range out.Metrics["giantstream_refresh_building"] {
			p.Building = m.Value > 0
		}
	}
	out.Windows = slices.Clone(l.windows[max(0, len(l.windows)-liveWindows):])
	out.Status, out.StatusAt, out.Unready = l.status, l.at, l.ready
	if l.readErr != nil {
		out.StatusError = l.readErr.Error()
	}
	return out, nil
}

// gather returns the metrics that are giantstream's own.
func gather(g prometheus.Gatherer) (map[string][]liveMetric, error) {
	families, err := g.Gather()
	if err != nil {
		return nil, err
	}
	out := map[string][]liveMetric{}
	for _, f := range families {
		name := f.GetName()
		if !strings.HasPrefix(name, "giantstream_") {
			continue
		}
		for _, m := range f.GetMetric() {
			one := liveMetric{Value: m.GetCounter().GetValue() + m.GetGauge().GetValue()} // one of them is nil, and 0
			for _, l := range m.GetLabel() {
				if one.Labels == nil {
					one.Labels = map[string]string{}
				}
				one.Labels[l.GetName()] = l.GetValue()
			}
			if h := m.GetHistogram(); h != nil {
				one.Value, one.Count = h.GetSampleSum(), h.GetSampleCount()
				for _, b := range h.GetBucket() {
					if !math.IsInf(b.GetUpperBound(), 1) {
						one.Buckets = append(one.Buckets, liveBucket{b.GetUpperBound(), b.GetCumulativeCount()})
					}
				}
				one.P50, one.P99 = quantile(one, 0.5), quantile(one, 0.99)
			}
			if math.IsNaN(one.Value) || math.IsInf(one.Value, 0) {
				continue // JSON has neither
			}
			out[name] = append(out[name], one)
		}
	}
	return out, nil
}

// quantile is Prometheus' histogram_quantile: the place in the bucket, as if its observations lay evenly. It is the
// upper bound of the last bucket where the quantile lies beyond, and nil without observations.
func quantile(m liveMetric, q float64) *float64 {
	if m.Count == 0 || len(m.Buckets) == 0 {
		return nil
	}
	rank := q * float64(m.Count)
	lower, below := 0.0, 0.0
	for _, b := range m.Buckets {
		if n := float64(b.Count); n >= rank && n > below {
			return new(lower + (b.AtMost-lower)*(rank-below)/(n-below))
		}
		lower, below = b.AtMost, float64(b.Count)
	}
	return &lower
}

// progress notes the stage of long work, and passes it on.
type progress struct {
	next train.Progress

	mu    sync.Mutex
	stage liveProgress
	began time.Time
}

// Stage implements train.Progress.
func (p *progress) Stage(name string, total int64) {
	p.mu.Lock()
	p.stage, p.began = liveProgress{Stage: name, Total: total}, time.Now()
	p.mu.Unlock()
	p.next.Stage(name, total)
}

// Add implements train.Progress.
func (p *progress) Add(n int64) {
	p.mu.Lock()
	p.stage.Done += n
	p.mu.Unlock()
	p.next.Add(n)
}

// Note passes words on, see train.Note.
func (p *progress) Note(words string) { train.Note(p.next, words) }

// done ends the last stage.
func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stage = liveProgress{}
}

// now returns the stage, nil between two works.
func (p *progress) now() *liveProgress {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stage.Stage == "" {
		return nil
	}
	now := p.stage
	now.Seconds = time.Since(p.began).Seconds()
	return &now
}

//go:embed page.html
var pageHTML string

// pagePolicy lets the page run its own script and style, and ask this server alone.
var pagePolicy = sync.OnceValue(func() string {
	return fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; connect-src 'self'; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'", hashOf("script"), hashOf("style"))
})

// hashOf is the source expression of the page's only element of a name.
func hashOf(element string) string {
	_, text, _ := strings.Cut(pageHTML, "<"+element+">")
	text, _, _ = strings.Cut(text, "</"+element+">")
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// servePage answers with the page, which holds no data.
func servePage(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", pagePolicy())
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache")
	fmt.Fprint(w, pageHTML)
}

// ServeHTTP answers with the document of the page.
func (l *live) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	doc, err := l.document(r.Context())
	var body []byte
	if err == nil {
		body, err = json.Marshal(doc)
	}
	if errors.Is(err, context.Canceled) {
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h.Set("Content-Type", "application/json")
	_, _ = w.Write(body) // the client may be gone
}
