// Package refreshing is the part of the service that decides which generation is served, and builds new ones: what has
// changed or drifted, the lease, the build, the choice of people, damage.
package refreshing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/cmd/internal/live"
	"giantstream/cmd/internal/service/heads"
	"giantstream/cmd/internal/service/settings"
	"giantstream/cmd/internal/telemetry"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/taskqueue"
	"giantstream/internal/retry"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/lease"
	"giantstream/train/answer"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
	measured "giantstream/train/generation/drift"
)

// Backlog is what is sent to the input topics and not committed yet.
type Backlog interface {
	// Uncommitted returns how many records it has.
	Uncommitted(ctx context.Context) (int64, error)
}

// Refresh decides which generation the process serves, and builds new ones. Its exported fields are its inputs, set
// before Open.
type Refresh struct {
	// Config is the configuration as of the start, Settings that in force.
	Config   *config.Config
	Settings *settings.Settings
	Store    sink.Store
	Shards   int
	// Undirected is that of the pipeline.
	Undirected bool
	Served     *generation.Served
	Heads      *heads.Heads
	Lease      *lease.Lease
	Backlog    Backlog
	// Queue hands out tasks of builds, for DoTasks.
	Queue taskqueue.Queue
	// Builds: this process builds generations, and does not only serve them.
	Builds bool
	// Format is the one of vectors that the configuration wants published.
	Format embedding.Format
	// CanaryTopic is the topic that has the canary, "" for none.
	CanaryTopic string
	// Moved says how far the embeddings have moved, nil where it is not known.
	Moved    func() *answer.Drift
	Device   compute.Backend // nil for the CPU
	Progress *live.Progress
	Traces   *telemetry.Traces
	Registry prometheus.Registerer
	Log      *slog.Logger

	// Evidence is what this process has measured of refresh.drift, nil before, and if it does not build.
	Evidence atomic.Pointer[measured.Evidence]

	metrics *metrics
	drift   drift
	// refused is the newest generation that the quality gate has refused, nil if the one that is
	// served is newer.
	refused atomic.Pointer[generation.Doc]
	// last is the newest complete generation, served or not, nil for none. Whether another is due is counted from it,
	// so that the same cut is not built again.
	last atomic.Pointer[generation.Doc]
	// damaged is the newest generation that is damaged and not replaced yet, 0 for none.
	damaged atomic.Int64
	// undecided is why nobody knows which generation is to be served, nil if that is known.
	undecided atomic.Pointer[error]

	// What follows belongs to the goroutine that calls Run or UpToDate.

	// builder is the number of the last lease of another process that was logged, held the generation of the last log
	// line about one that is ready and not served.
	builder, held int64
	// canary is the number of the canary, 0 for none.
	canary int64
	// because is why the last generation was built here.
	because string
}

// Open registers the metrics.
func (r *Refresh) Open() {
	r.metrics = newMetrics(r.Registry)
	r.Registry.MustRegister(driftCollector{r})
}

const (
	// refreshPoll is the interval at which Run checks whether a new generation is due.
	refreshPoll = 2 * time.Second
	// upToDatePoll is the interval at which UpToDate does.
	upToDatePoll = 200 * time.Millisecond
)

// Run looks for generations of others until ctx ends, and builds one once enough has changed (refresh.min_changes,
// refresh.max_age), if the process Builds and gets the lease. While it trains, the current one keeps serving.
func (r *Refresh) Run(ctx context.Context) error {
	const first, longest = 10 * time.Second, 10 * time.Minute
	pause, again := first, time.Time{} // the next pause after a failure; no refresh before again
	tick := time.NewTicker(refreshPoll)
	defer tick.Stop()
	for {
		// Another process, or a command, may have finished a generation. It is served even while
		// this process waits for its next attempt.
		if err := r.Load(ctx); errors.Is(err, generation.ErrChoiceDamaged) {
			pause = first // logged once; nothing is built until it is mended
		} else if err != nil {
			r.Log.Warn("cannot look for a newer generation, trying again", "in", refreshPoll, "error", err)
		} else if r.Builds && !time.Now().Before(again) {
			switch err := r.refreshIfDue(ctx); {
			case err == nil, r.Elsewhere(err):
				pause = first
			case ctx.Err() != nil:
			case errors.Is(err, compute.ErrFailed):
				return err // it fails again until another process opens the device
			case errors.Is(err, generation.ErrTooFew):
				r.Log.Info("too few texts for a generation yet", "retry_in", first, "reason", err)
				again = time.Now().Add(first)
			default:
				r.metrics.refreshFailed.Inc()
				r.Log.Error("refresh failed; the current generation keeps serving", "retry_in", pause, "error", err)
				again, pause = time.Now().Add(pause), min(2*pause, longest)
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// refreshIfDue builds a generation if one is due.
func (r *Refresh) refreshIfDue(ctx context.Context) error {
	due, _, err := r.Due(ctx)
	if err == nil && due {
		_, err = r.BuildIf(ctx, r.Due)
	}
	return err
}

// unbuilt says why a generation is to be built even if nothing has changed, "" if there is no such reason.
func (r *Refresh) unbuilt(ctx context.Context) (why string, err error) {
	unfinished, _, err := generation.Next(ctx, r.Store)
	if err != nil {
		return "", err
	}
	if unfinished != nil {
		return becauseUnfinished, nil
	}
	return r.becauseDamaged(), nil
}

// Due reports whether a new generation should start now, and why.
func (r *Refresh) Due(ctx context.Context) (bool, string, error) {
	if why, err := r.unbuilt(ctx); why != "" || err != nil {
		return why != "", why, err
	}
	changes, nodes, edges, err := r.Changes(ctx)
	if err != nil || changes == 0 {
		return false, "", err
	}
	newest, triggers := r.newest(), r.Settings.Get().Refresh
	if newest == nil {
		if nodes < int64(triggers.MinNodes) {
			return false, "", nil
		}
		// The first generation waits for the backlog: one that is fitted on half a catalog would be
		// replaced at once.
		open, err := r.Backlog.Uncommitted(ctx)
		return err == nil && open == 0, fmt.Sprintf("%d nodes and no generation yet", nodes), err
	}
	if firstLinks(newest, edges) {
		// As for the first generation: one on half of the links would be replaced at once.
		open, err := r.Backlog.Uncommitted(ctx)
		return err == nil && open == 0,
			fmt.Sprintf("the first links since generation %d, which is of the texts alone", newest.Generation), err
	}
	age := time.Since(newest.Created)
	drifted := r.BecauseDrifted(changes, nodes)
	switch {
	case float64(changes) >= rowsOf(triggers.MinChanges, nodes):
		return true, fmt.Sprintf("%d rows changed since generation %d", changes, newest.Generation), nil
	case drifted != "":
		return true, drifted, nil
	case age >= triggers.MaxAge:
		return true, fmt.Sprintf("generation %d is %s old", newest.Generation, age.Round(time.Second)), nil
	}
	return false, "", nil
}

// rowsOf returns how many rows a field says, which has a share of the nodes below 1, else a number.
func rowsOf(field float64, nodes int64) float64 {
	if field < 1 {
		return field * float64(nodes)
	}
	return field
}

// firstLinks says whether a generation was built before the graph had its first edge. Where it had
// edges to nodes that did not exist, more of these are no news: the usual rules apply.
func firstLinks(doc *generation.Doc, edges int64) bool {
	return doc.TextOnly != "" && doc.Graph.Links == 0 && doc.Graph.Dangling == 0 && edges > 0
}

// newest returns the generation that was built last, also one that is not served; nil for none.
func (r *Refresh) newest() *generation.Doc { return r.last.Load() }

// Changes counts the rows committed since the cut of the newest generation (since the beginning,
// without one), the live nodes and the edge assertions.
func (r *Refresh) Changes(ctx context.Context) (changed, nodes, edges int64, err error) {
	var cut map[int]int64
	if doc := r.newest(); doc != nil {
		cut = doc.Cut
	}
	heads, err := r.Heads.NewestOfAll(ctx)
	for p, head := range heads {
		if head == nil {
			continue
		}
		nodes, edges = nodes+head.Nodes, edges+head.Edges
		rows, err := r.Heads.RowsSince(ctx, p, cut[p])
		if err != nil {
			return 0, 0, 0, err
		}
		changed += rows
	}
	if err != nil {
		return 0, 0, 0, err
	}
	r.drift.changed(changed, nodes)
	return changed, nodes, edges, nil
}

// UpToDate returns once a generation covers everything committed. It finishes an unfinished
// generation and builds a new one if rows have changed since its cut, or waits for the process that
// does. Without role refresh it always waits. With that role it also builds one where the configuration asks
// for other embeddings than the newest generation has, once: two processes with different configurations
// do not take turns. It returns the current generation, and whether this process has built one.
func (r *Refresh) UpToDate(ctx context.Context) (doc *generation.Doc, built bool, err error) {
	renewed := false // by a generation of this process, with its settings
	outdated := func(ctx context.Context) (bool, string, error) {
		due, why, err := r.Outdated(ctx)
		if err == nil && !due && !renewed && r.Builds {
			why = r.becauseSettings()
			due = why != ""
		}
		return due, why, err
	}
	err = retry.Poll(ctx, upToDatePoll, func() (bool, error) {
		for {
			if err := r.Load(ctx); err != nil {
				return false, err
			}
			if due, _, err := outdated(ctx); err != nil || !due {
				return err == nil, err
			}
			if !r.Builds {
				return false, nil
			}
			here, err := r.BuildIf(ctx, outdated)
			if err != nil {
				switch {
				case r.Elsewhere(err):
					err = nil // look again later
				case errors.Is(err, generation.ErrTooFew) && r.Served.Current() != nil:
					r.Log.Warn("too few texts are left for a new generation; the current one stays", "error", err)
					return true, nil
				}
				return false, err
			}
			built = built || here
			renewed = renewed || here && r.becauseSettings() == ""
		}
	})
	if err != nil {
		return nil, false, fmt.Errorf("bring the embeddings up to date: %w", err)
	}
	if g := r.Served.Current(); g != nil {
		return g.Doc, built, nil
	}
	return nil, false, fmt.Errorf("%w: no node has arrived; check the topics, the field mapping and the dead letters",
		generation.ErrTooFew)
}

// Outdated reports whether the current generation lacks something that is committed, and why.
func (r *Refresh) Outdated(ctx context.Context) (bool, string, error) {
	if why, err := r.unbuilt(ctx); why != "" || err != nil {
		return why != "", why, err
	}
	changes, _, _, err := r.Changes(ctx)
	return changes > 0, fmt.Sprintf("%d rows changed", changes), err
}

// becauseSettings says what the configuration asks of embeddings that the newest generation's do not have, ""
// for nothing.
func (r *Refresh) becauseSettings() string {
	newest := r.newest()
	if newest == nil {
		return ""
	}
	changed := wiring.ChangedSettings(newest, r.Config)
	if len(changed) == 0 {
		return ""
	}
	return fmt.Sprintf("generation %d was made with other settings: %s", newest.Generation, strings.Join(changed, "; "))
}

// SayWhatDiffers logs what of the configuration the served embeddings do not have yet.
func (r *Refresh) SayWhatDiffers() {
	if newest := r.newest(); newest != nil {
		if changed := wiring.ChangedSettings(newest, r.Config); len(changed) > 0 {
			r.Log.Warn("settings differ from those of the newest generation, which keeps serving until the next "+
				"refresh; 'giantstream rebuild' makes one with these now", "generation", newest.Generation,
				"differences", changed)
		}
	}
}

const becauseUnfinished = "an unfinished generation is there to resume"

// BuildIf takes the refresh lease. If a generation is still due by then, it builds one on the
// newest cut, or finishes the unfinished one, and makes it current. It returns lease.ErrHeld if
// another process has the lease, and lease.ErrLost if another process has taken it over from this
// one.
func (r *Refresh) BuildIf(ctx context.Context,
	due func(context.Context) (bool, string, error)) (built bool, err error) {
	held, err := r.Lease.Acquire(ctx)
	if err != nil {
		return false, err
	}
	ctx, release := held.Keep(ctx)
	defer release()
	defer func() {
		if lost := context.Cause(ctx); err != nil && errors.Is(lost, lease.ErrLost) {
			err = lost // and not the end of the context, which follows from it
		}
	}()
	// Another process may have built one before this one had the lease.
	if err := r.Load(ctx); err != nil {
		return false, err
	}
	yes, why, err := due(ctx)
	if err != nil || !yes {
		return false, err
	}
	r.metrics.building.Set(1)
	defer r.metrics.building.Set(0)
	defer r.Progress.Done()
	r.Log.Info("building a generation", "because", why, "lease", held.Number())
	r.because = why
	store := held.Store()
	if _, err := r.build(ctx, store, why); err != nil {
		return false, err
	}
	if err := r.Load(ctx); err != nil {
		return false, err
	}
	removed, err := generation.Prune(ctx, store, r.Settings.Get().Refresh.Keep)
	if err != nil {
		r.Log.Warn("old generations could not be removed; the next refresh tries again", "error", err)
	} else if len(removed) > 0 {
		r.Log.Info("old generations removed", "generations", removed)
	}
	return true, nil
}

// build builds the next generation, or finishes the unfinished one.
func (r *Refresh) build(ctx context.Context, store sink.Store, why string) (*generation.Doc, error) {
	ctx, progress, trace := r.Traces.Build(ctx, r.Progress, why)
	request := wiring.RequestOf(r.Settings.Get())
	request.Because, request.Warm = why, r.StartsWarm()
	request.Shards, request.AtATime = r.Shards, runtime.GOMAXPROCS(0)
	w := r.TaskWorker(store)
	w.Progress = progress
	doc, err := w.Build(ctx, request, stages.Finish)
	if err == nil {
		trace.Built(doc.Generation, doc.Encoder.Kind, doc.Graph.Nodes, string(doc.Status))
	}
	trace.End(err)
	return doc, err
}

// StartsWarm says whether the next generation may start from what the one before has learned.
func (r *Refresh) StartsWarm() bool {
	r.drift.mu.Lock()
	rows, nodes := r.drift.rows, r.drift.nodes
	r.drift.mu.Unlock()
	return r.Settings.Get().Refresh.WarmStart == config.WarmAuto && r.BecauseDrifted(rows, nodes) == ""
}

// Damaged returns the newest damaged generation that no whole one has replaced, 0 for none.
func (r *Refresh) Damaged() int64 { return r.damaged.Load() }

// Because returns why this process has built its last generation, "" if it has built none.
func (r *Refresh) Because() string { return r.because }

// Elsewhere reports whether err means that another process is building a generation. It logs each
// holder once.
func (r *Refresh) Elsewhere(err error) bool {
	var by *lease.HeldError
	switch {
	case errors.Is(err, lease.ErrLost):
		r.Log.Warn("another process has taken the refresh over; what it finishes is served", "error", err)
	case errors.As(err, &by):
		if by.Number != r.builder {
			r.builder = by.Number
			r.Log.Info("another process is building a generation", "holder", by.Holder, "lease", by.Number)
		}
	default:
		return false
	}
	return true
}

// Load makes current what the store says is to be served, and notes what is newer and is not. A generation that
// turns out to be damaged is passed over.
func (r *Refresh) Load(ctx context.Context) error {
	for {
		began := time.Now()
		latest, err := generation.Newest(ctx, r.Store)
		r.noteChoice(err)
		if err != nil {
			return err
		}
		r.refuse(latest.Refused)
		r.noteDamage(latest.Damaged)
		r.noteHeld(latest.Held)
		r.last.Store(latest.Last())
		doc := latest.Current
		if doc == nil || r.Served.Number() == doc.Generation {
			again, err := r.openCanary(ctx, latest.Canary)
			if again && err == nil {
				continue
			}
			if err == nil {
				r.Served.Looked(began, latest.PassedOver())
			}
			return err
		}
		if warning := doc.Warning(); warning != "" {
			r.Log.Warn("the generation served is worse than text alone", "generation", doc.Generation,
				"because", warning)
		}
		err = r.serve(ctx, doc)
		if err == nil {
			continue // with the canary
		}
		if !errors.Is(err, generation.ErrDamaged) {
			return err
		}
		if err := r.Condemn(ctx, doc.Generation, err, func() error { return r.serve(ctx, doc) }); err != nil {
			return err
		}
	}
}

// openCanary gives the canary topic the canary, nil for none. again says that it has turned out to be damaged, so that
// it is no more.
func (r *Refresh) openCanary(ctx context.Context, doc *generation.Doc) (again bool, err error) {
	now := r.canary
	if doc == nil {
		if now > 0 {
			r.Log.Info("a generation is no longer the canary", "generation", now)
			r.setCanary(nil)
		}
		return false, nil
	}
	if doc.Generation == now {
		return false, nil
	}
	open := func() error {
		g, err := generation.Open(ctx, r.Store, doc, r.Device)
		if err == nil {
			if r.CanaryTopic == "" {
				r.Log.Warn("a generation is a canary and there is no canary topic (sink.canary_topic), so no topic "+
					"has it; 'giantstream generations promote' has it served, and 'rollback' withdraws it",
					"generation", doc.Generation)
			} else {
				r.Log.Info("only the canary topic gets a new generation; 'giantstream generations promote' has it "+
					"served, and 'rollback' withdraws it", "generation", doc.Generation, "topic", r.CanaryTopic)
			}
			r.setCanary(g)
		}
		return err
	}
	if err = open(); errors.Is(err, generation.ErrDamaged) {
		return true, r.Condemn(ctx, doc.Generation, err, open)
	}
	return false, err
}

// setCanary has the followers of the canary topic use a generation, nil for none.
func (r *Refresh) setCanary(g *generation.Generation) {
	r.Served.SetCanary(g)
	r.canary = 0
	if g != nil {
		r.canary = g.Doc.Generation
	}
	r.metrics.canary.Set(float64(r.canary))
	r.Heads.WakeAll()
}

// noteHeld notes the newest generation that is ready and, by a choice of people, not served; nil for none.
func (r *Refresh) noteHeld(doc *generation.Doc) {
	number := int64(0)
	if doc != nil {
		number = doc.Generation
		if r.held != number {
			r.Log.Info("a generation is ready and not served: it was withdrawn, or another one is pinned",
				"generation", number)
		}
	}
	r.held = number
	r.metrics.held.Set(float64(number))
}

// refuse notes the newest refused generation, nil for none.
func (r *Refresh) refuse(doc *generation.Doc) {
	r.refused.Store(doc)
	number := 0.0
	if doc != nil {
		number = float64(doc.Generation)
	}
	r.metrics.refused.Set(number)
}

// Refused returns the generation that the quality gate has refused after the one that is served, nil
// for none.
func (r *Refresh) Refused() *generation.Doc { return r.refused.Load() }

// serve makes a ready generation current.
func (r *Refresh) serve(ctx context.Context, doc *generation.Doc) error {
	before := r.Served.Number()
	g, err := generation.Open(ctx, r.Store, doc, r.Device)
	if err != nil {
		return err
	}
	g.UnknownLabels, g.NGrams = &r.metrics.unknownLabels, &r.metrics.ngrams
	r.drift.serves(doc, &r.metrics.ngrams)
	r.Served.Serve(g)
	if before > doc.Generation {
		r.Log.Info("an older generation is served again, and its embeddings are published again", "generation",
			doc.Generation, "before", before)
	}
	if stored := doc.Settings.Stored; r.Format.LimitTo(stored).String() != r.Format.String() {
		r.Log.Warn("this generation's embeddings were stored smaller than sink.embedding_type and "+
			"sink.embedding_dim now ask for; "+
			"the next generation will have what they say", "generation", doc.Generation,
			"published", r.Format.LimitTo(stored).String(), "configured", r.Format.String())
	}
	r.metrics.generation.Set(float64(doc.Generation))
	r.metrics.shortfalls.Set(float64(len(doc.Shortfalls)))
	r.metrics.compared(doc.Overlap)
	r.Heads.WakeAll()
	return nil
}
