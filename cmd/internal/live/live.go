package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/cmd/internal/buildinfo"
	"giantstream/ingest/decode"
	"giantstream/internal/ambient"
	"giantstream/stream/commitlog"
	"giantstream/train/answer"
	"giantstream/train/generation/drift"
)

// Process is what a View shows of the process that it belongs to. Its functions are called at any time after the
// process has started.
type Process struct {
	Pipeline string
	// Name of this process among those of the pipeline.
	Name    string
	Roles   []string
	Metrics prometheus.Gatherer
	// Unready returns why the process cannot do its part, "" if it can.
	Unready func(context.Context) string
	// Index returns the index of similar items, nil if there is none.
	Index func() *Index
	// Drift returns how far the graph has gone from the generation being served, nil before the first; nil
	// shows nothing.
	Drift func() *Drift
	// Status returns what 'giantstream status' shows; nil shows nothing.
	Status func(context.Context) (any, error)
}

// View answers /status.json: what status and /metrics say, for a page that is looked at while it changes.
type View struct {
	// Progress notes the long work of the process.
	Progress Progress

	process Process
	started time.Time
	// until is closed when the process stops, and with it a read.
	until <-chan struct{}

	mu      sync.Mutex
	reading chan struct{} // closed when the read in progress ends; nil for none
	status  any           // of the last read that succeeded
	at      time.Time     // when that read ended
	took    time.Duration
	ready   string // why the process is not ready, "" if it is
	readErr error
	windows []Window // newest last
}

// New returns a view of a process that begins now.
func New(p Process, progress ambient.Progress) *View {
	return &View{process: p, started: time.Now(), Progress: Progress{next: ambient.OrDiscard(progress)}}
}

// StopReadsOn ends reads when a channel is closed. It must be called before the first answer.
func (v *View) StopReadsOn(stopped <-chan struct{}) { v.until = stopped }

const (
	// readPause is the least time between two reads of the status; a slow read is followed by a pause of
	// readShare times what it took, so that a page that somebody looks at costs the store little.
	readPause = 2 * time.Second
	readShare = 10
	// readTime bounds a read, answerWait how long an answer waits for it.
	readTime   = 20 * time.Second
	answerWait = 5 * time.Second
	// keptWindows is how many committed windows the page shows.
	keptWindows = 60
)

// Window is a window that this process has committed.
type Window struct {
	Shard     int       `json:"shard"`
	Seq       int64     `json:"seq"`
	Rows      int64     `json:"rows"`
	Committed time.Time `json:"committed"`
}

// Document is the document at /status.json.
type Document struct {
	Pipeline string    `json:"pipeline"`
	Version  string    `json:"version"`
	Process  string    `json:"process"`
	Roles    []string  `json:"roles"`
	Started  time.Time `json:"started"`
	Now      time.Time `json:"now"`
	// Unready says why /readyz answers 503, "" if it does not.
	Unready string `json:"unready,omitempty"`
	// Serve is the index of similar items, nil without the role or before it is ready.
	Serve *Index `json:"serve,omitempty"`
	// Drift is how far the graph has gone from the generation being served, nil before the first.
	Drift *Drift `json:"drift,omitempty"`
	// Progress is the long work that this process does, nil for none.
	Progress *Stage `json:"progress,omitempty"`
	// Windows are the newest that this process has committed, newest last.
	Windows []Window `json:"windows"`
	// Reasons explain the codes of dead letters.
	Reasons map[string]string `json:"reasons"`
	// Metrics are those of /metrics that are giantstream's own, by name.
	Metrics map[string][]Metric `json:"metrics"`
	// Status is what 'giantstream status --json' prints, as of StatusAt. StatusError says why it is not newer.
	Status      any       `json:"status,omitempty"`
	StatusAt    time.Time `json:"status_at,omitzero"`
	StatusError string    `json:"status_error,omitempty"`
}

// Index is what questions about similar items are answered from.
type Index struct {
	Generation int64 `json:"generation"`
	Nodes      int   `json:"nodes"`
}

// Drift is how far the graph has gone from the generation being served; nil for what the process does not know.
type Drift struct {
	// Rows were committed since the cut of the newest generation, RowsShare of the live nodes. A node that has
	// changed twice counts twice. Known to processes with the role refresh.
	Rows      *int64   `json:"rows,omitempty"`
	RowsShare *float64 `json:"rows_share,omitempty"`
	// RefreshAt is the share at which the next generation begins.
	RefreshAt float64 `json:"refresh_at"`
	// NGramsUnknown is the share of the n-grams of rows built here since the generation is served that its vocabulary
	// does not have, NGramsUnknownFitted that of the texts it was fitted on.
	NGramsUnknown       *float64 `json:"ngrams_unknown,omitempty"`
	NGramsUnknownFitted *float64 `json:"ngrams_unknown_fitted,omitempty"`
	// Measures are those of refresh.drift, known to processes with the role refresh. NeedsShare is the share of rows
	// below which they start no generation.
	Measures   []drift.Finding `json:"measures,omitempty"`
	NeedsShare float64         `json:"needs_share,omitempty"`
	// Embeddings are known to processes with the role serve.
	Embeddings *answer.Drift `json:"embeddings,omitempty"`
}

// Committed notes a window.
func (v *View) Committed(m *commitlog.Manifest) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.windows = append(v.windows, Window{m.Shard, m.Seq, m.Rows, m.Created})
	if len(v.windows) > 2*keptWindows {
		v.windows = slices.Clone(v.windows[len(v.windows)-keptWindows:])
	}
}

// refresh reads the status, if the last one is old, and waits a moment for it. A store that hangs keeps one read
// waiting and no more.
func (v *View) refresh(ctx context.Context) {
	v.mu.Lock()
	if v.reading == nil && time.Since(v.at) >= max(readPause, readShare*v.took) {
		v.reading = make(chan struct{})
		go v.readStatus(v.reading)
	}
	reading := v.reading
	v.mu.Unlock()
	if reading == nil {
		return
	}
	late := time.NewTimer(answerWait)
	defer late.Stop()
	select {
	case <-reading:
	case <-late.C:
	case <-ctx.Done():
	}
}

func (v *View) readStatus(done chan struct{}) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	go func() {
		select {
		case <-v.until:
			cancel()
		case <-ctx.Done():
		}
	}()
	status, ready, err := v.askProcess(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.readErr = err; err == nil {
		v.status = status
	}
	v.ready, v.at, v.took = ready, time.Now(), time.Since(began)
	v.reading = nil
	close(done)
}

// askProcess asks the process for its status, and whether it is ready. A panic becomes an error: the rest of the
// process goes on.
func (v *View) askProcess(ctx context.Context) (status any, unready string, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("reading the status has panicked: %v\n%s", fault, debug.Stack())
		}
	}()
	unready = v.process.Unready(ctx)
	if v.process.Status == nil {
		return nil, unready, nil
	}
	status, err = v.process.Status(ctx)
	return status, unready, err
}

// document is what /status.json answers now.
func (v *View) document(ctx context.Context) (*Document, error) {
	v.refresh(ctx)
	p := v.process
	out := &Document{Pipeline: p.Pipeline, Version: buildinfo.Read().String(), Process: p.Name,
		Roles: p.Roles, Started: v.started, Now: time.Now(), Reasons: map[string]string{}}
	for _, code := range decode.Codes() {
		out.Reasons[string(code)] = code.Explain()
	}
	out.Serve = p.Index()
	if p.Drift != nil {
		out.Drift = p.Drift()
	}
	var err error
	if out.Metrics, err = gather(p.Metrics); err != nil {
		return nil, err
	}
	out.Progress = v.Progress.currentStage()
	v.mu.Lock()
	defer v.mu.Unlock()
	if stage := out.Progress; stage != nil {
		for _, m := range out.Metrics["giantstream_refresh_building"] {
			stage.Building = m.Value > 0
		}
	}
	out.Windows = slices.Clone(v.windows[max(0, len(v.windows)-keptWindows):])
	out.Status, out.StatusAt, out.Unready = v.status, v.at, v.ready
	if v.readErr != nil {
		out.StatusError = v.readErr.Error()
	}
	return out, nil
}

// ServeHTTP answers with the document of the page.
func (v *View) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	doc, err := v.document(r.Context())
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
