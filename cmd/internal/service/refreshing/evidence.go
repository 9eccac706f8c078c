package refreshing

import (
	"context"
	"fmt"
	"time"

	"giantstream/cmd/internal/logview"
	"giantstream/cmd/internal/wiring"
	"giantstream/internal/retry"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
	measured "giantstream/train/generation/drift"
)

const (
	// DriftPoll is how often a process that refreshes looks for rows to measure.
	DriftPoll = 5 * time.Second
	// DriftSave is how often at most it stores what it has measured, as long as no generation becomes due.
	DriftSave = time.Minute
)

// BecauseDrifted says what of refresh.drift asks for a new generation, "" for nothing. What is not measured yet asks
// for nothing.
func (r *Refresh) BecauseDrifted(changes, nodes int64) string {
	cfg, current, e := r.Settings.Get(), r.Served.Current(), r.Evidence.Load()
	if current == nil || e == nil || e.Generation != current.Doc.Generation ||
		float64(changes) < rowsOf(cfg.Refresh.Drift.MinChanges, nodes) {
		return ""
	}
	return e.Due(wiring.DriftThresholds(cfg))
}

// Meter measures what has drifted since the cut of the generation being served. What it knows is a function
// of the store, so that it begins again with each generation and with each process.
type Meter struct {
	*Refresh
	meter      *measured.Meter  // nil as long as the cut was not read
	tails      []commitlog.Tail // of the shards
	generation int64
	unsaved    *measured.Evidence // nil for none
	saved      time.Time
	due        bool // by the figures that were saved
}

// NewMeter returns a meter that knows nothing yet.
func (r *Refresh) NewMeter() *Meter { return &Meter{Refresh: r} }

// Measure measures what has drifted until ctx ends. While the store is away, or damaged, the last figures stay.
func (r *Refresh) Measure(ctx context.Context) error {
	f := r.NewMeter()
	pause := retry.Backoff{Min: DriftPoll, Max: 10 * time.Minute}
	for {
		wait := DriftPoll
		switch err := f.Step(ctx); {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			wait = pause.Next()
			r.Log.Warn("what has drifted is not measured, trying again", "in", wait, "error", err)
		default:
			pause.Reset()
		}
		if err := retry.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// Step measures what was committed since the last one.
func (f *Meter) Step(ctx context.Context) (err error) {
	// As for a build: a fault of the measuring must not end what else the process does.
	defer func() {
		if v := recover(); v != nil {
			f.meter = nil
			err = fmt.Errorf("measuring drift has panicked, which is a fault of giantstream: %v", v)
		}
	}()
	g := f.Served.Current()
	if g == nil || wiring.DriftThresholds(f.Settings.Get()).AreOff() {
		f.meter = nil
		f.Evidence.Store(nil)
		return nil
	}
	changed := false
	if f.meter == nil || f.generation != g.Doc.Generation {
		if err := f.begin(ctx, g); err != nil {
			return err
		}
		changed = true
	}
	for shard := range f.Shards {
		more, err := f.read(ctx, shard)
		if err != nil {
			return err
		}
		changed = changed || more
	}
	if changed {
		e, err := f.meter.Evidence()
		if err != nil {
			return err
		}
		f.Evidence.Store(&e)
		f.unsaved = &e
	}
	return f.save(ctx)
}

// begin reads the cut of a generation.
func (f *Meter) begin(ctx context.Context, g *generation.Generation) error {
	m, err := measured.New(g, f.Undirected)
	if err != nil {
		return err
	}
	source, err := logview.OpenCut(ctx, f.Store, f.Shards, g.Doc.Cut)
	if err != nil {
		return err
	}
	if err := m.Learn(ctx, source); err != nil {
		return err
	}
	f.meter, f.generation = m, g.Doc.Generation
	f.tails = make([]commitlog.Tail, f.Shards)
	for shard := range f.tails {
		f.tails[shard] = commitlog.Tail{Store: f.Store, Shard: shard, Known: f.Heads.Known(shard)}
	}
	return nil
}

// read measures what a shard has committed since the last look.
func (f *Meter) read(ctx context.Context, shard int) (changed bool, err error) {
	store := f.Store
	columns := []string{rows.ColNodeID, rows.ColText, rows.ColLabels, rows.ColDeleted}
	for segment, err := range f.tails[shard].SegmentsAfter(ctx, f.meter.Upto(shard)) {
		if err != nil {
			return changed, err
		}
		for r, err := range segment.Rows(ctx, store, rows.ReadOptions{Columns: columns}) {
			if err == nil {
				err = f.meter.Apply(&r.Row)
			}
			if err != nil {
				return changed, err
			}
		}
		f.meter.Covers(shard, segment.To)
		changed = true
	}
	return changed, nil
}

// save stores the figures for 'giantstream status': now and then, and when they begin to ask for a generation.
func (f *Meter) save(ctx context.Context) error {
	e := f.unsaved
	if e == nil {
		return nil
	}
	cfg := f.Settings.Get()
	t := wiring.DriftThresholds(cfg)
	due := e.Due(t) != ""
	if time.Since(f.saved) < DriftSave && due == f.due {
		return nil
	}
	f.drift.mu.Lock()
	changes, nodes := f.drift.rows, f.drift.nodes
	f.drift.mu.Unlock()
	d := measured.Document{At: time.Now().UTC(), Changes: changes,
		NeedsChanges: int64(rowsOf(cfg.Refresh.Drift.MinChanges, nodes)), Thresholds: t, Evidence: *e}
	if err := d.Save(ctx, f.Store); err != nil {
		return err
	}
	f.unsaved, f.saved, f.due = nil, time.Now(), due
	return nil
}
