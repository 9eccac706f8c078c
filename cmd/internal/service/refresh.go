package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"giantstream/cmd/internal/logview"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/sink"
	"giantstream/sink/lease"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/generation"
	"giantstream/train/generation/staged"
)

// refreshPoll is the interval at which the service checks whether a new generation is due.
const refreshPoll = 2 * time.Second

// Run serves until ctx ends or the service fails: embeddings follow the changes, and a new
// generation starts by itself once enough has changed (refresh.min_changes, refresh.max_age), in
// whichever process of the pipeline gets the refresh lease first. While it trains, the current one
// keeps serving.
func (s *Service) Run(ctx context.Context) error {
	const first, longest = 10 * time.Second, 10 * time.Minute
	pause, again := first, time.Time{} // the next pause after a failure; no refresh before again
	tick := time.NewTicker(refreshPoll)
	defer tick.Stop()
	for {
		// Another process, or a command, may have finished a generation. It is served even while
		// this process waits for its next attempt.
		if err := s.loadCurrent(ctx); err != nil {
			s.log.Warn("cannot look for a newer generation, trying again", "in", refreshPoll, "error", err)
		} else if s.roles.Refresh && !time.Now().Before(again) {
			switch err := s.refreshIfDue(ctx); {
			case err == nil, s.elsewhere(err):
				pause = first
			case ctx.Err() != nil:
			case errors.Is(err, compute.ErrFailed):
				return err // it fails again until another process opens the device
			case errors.Is(err, generation.ErrTooFew):
				s.log.Info("too few texts for a generation yet", "retry_in", first, "reason", err)
				again = time.Now().Add(first)
			default:
				s.metrics.refreshFailed.Inc()
				s.log.Error("refresh failed; the current generation keeps serving", "retry_in", pause, "error", err)
				again, pause = time.Now().Add(pause), min(2*pause, longest)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.failed:
			return s.failure()
		case <-tick.C:
		}
	}
}

// refreshIfDue builds a generation if one is due.
func (s *Service) refreshIfDue(ctx context.Context) error {
	due, _, err := s.refreshDue(ctx)
	if err == nil && due {
		_, err = s.refresh(ctx, s.refreshDue)
	}
	return err
}

// unbuilt says why a generation is to be built even if nothing has changed, "" if there is no such reason.
func (s *Service) unbuilt(ctx context.Context) (why string, err error) {
	unfinished, _, err := generation.Next(ctx, s.store)
	if err != nil {
		return "", err
	}
	if unfinished != nil {
		return becauseUnfinished, nil
	}
	return s.becauseDamaged(), nil
}

// refreshDue reports whether a new generation should start now, and why.
func (s *Service) refreshDue(ctx context.Context) (bool, string, error) {
	if why, err := s.unbuilt(ctx); why != "" || err != nil {
		return why != "", why, err
	}
	changes, nodes, edges, err := s.changes(ctx)
	if err != nil || changes == 0 {
		return false, "", err
	}
	newest, triggers := s.newest(), s.settings.get().Refresh
	if newest == nil {
		if nodes < int64(triggers.MinNodes) {
			return false, "", nil
		}
		// The first generation waits for the backlog: one that is fitted on half a catalog would be
		// replaced at once.
		b, err := s.backlog(ctx)
		return err == nil && b.open == 0, fmt.Sprintf("%d nodes and no generation yet", nodes), err
	}
	if firstLinks(newest, edges) {
		// As for the first generation: one on half of the links would be replaced at once.
		b, err := s.backlog(ctx)
		return err == nil && b.open == 0,
			fmt.Sprintf("the first links since generation %d, which is of the texts alone", newest.Generation), err
	}
	age := time.Since(newest.Created)
	drifted := s.becauseDrifted(changes, nodes)
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
func (s *Service) newest() *generation.Doc { return s.last.Load() }

// changes counts the rows committed since the cut of the newest generation (since the beginning,
// without one), the live nodes and the edge assertions.
func (s *Service) changes(ctx context.Context) (changed, nodes, edges int64, err error) {
	var cut map[int]int64
	if doc := s.newest(); doc != nil {
		cut = doc.Cut
	}
	for p := range s.cfg.Shards {
		head, err := s.logs.get(ctx, s.store, p)
		if err != nil {
			return 0, 0, 0, err
		}
		if head == nil {
			continue
		}
		nodes, edges = nodes+head.Nodes, edges+head.Edges
		rows, err := s.logs.rowsSince(ctx, s.store, p, cut[p])
		if err != nil {
			return 0, 0, 0, err
		}
		changed += rows
	}
	s.drift.changed(changed, nodes)
	return changed, nodes, edges, nil
}

// UpToDate returns once a generation covers everything committed. It finishes an unfinished
// generation and builds a new one if rows have changed since its cut, or waits for the process that
// does. Without role refresh it always waits. With that role it also builds one where the configuration asks
// for other embeddings than the newest generation has, once: two processes with different configurations
// do not take turns. It returns the current generation, and whether this process has built one.
func (s *Service) UpToDate(ctx context.Context) (doc *generation.Doc, built bool, err error) {
	renewed := false // by a generation of this process, with its settings
	outdated := func(ctx context.Context) (bool, string, error) {
		due, why, err := s.outdated(ctx)
		if err == nil && !due && !renewed && s.roles.Refresh {
			why = s.becauseSettings()
			due = why != ""
		}
		return due, why, err
	}
	err = s.poll(ctx, "bring the embeddings up to date", func() (bool, error) {
		for {
			if err := s.loadCurrent(ctx); err != nil {
				return false, err
			}
			if due, _, err := outdated(ctx); err != nil || !due {
				return err == nil, err
			}
			if !s.roles.Refresh {
				return false, nil
			}
			here, err := s.refresh(ctx, outdated)
			if err != nil {
				switch {
				case s.elsewhere(err):
					err = nil // look again later
				case errors.Is(err, generation.ErrTooFew) && s.Current() != nil:
					s.log.Warn("too few texts are left for a new generation; the current one stays", "error", err)
					return true, nil
				}
				return false, err
			}
			built = built || here
			renewed = renewed || here && s.becauseSettings() == ""
		}
	})
	if err != nil {
		return nil, false, err
	}
	if g := s.Current(); g != nil {
		return g.Doc, built, nil
	}
	return nil, false, fmt.Errorf("%w: no node has arrived; check the topics, the field mapping and the dead letters",
		generation.ErrTooFew)
}

// outdated reports whether the current generation lacks something that is committed, and why.
func (s *Service) outdated(ctx context.Context) (bool, string, error) {
	if why, err := s.unbuilt(ctx); why != "" || err != nil {
		return why != "", why, err
	}
	changes, _, _, err := s.changes(ctx)
	return changes > 0, fmt.Sprintf("%d rows changed", changes), err
}

// becauseSettings says what the configuration asks of embeddings that the newest generation's do not have, ""
// for nothing.
func (s *Service) becauseSettings() string {
	newest := s.newest()
	if newest == nil {
		return ""
	}
	changed := wiring.ChangedSettings(newest, s.cfg)
	if len(changed) == 0 {
		return ""
	}
	return fmt.Sprintf("generation %d was made with other settings: %s", newest.Generation, strings.Join(changed, "; "))
}

// sayWhatDiffers logs what of the configuration the served embeddings do not have yet.
func (s *Service) sayWhatDiffers() {
	if newest := s.newest(); newest != nil {
		if changed := wiring.ChangedSettings(newest, s.cfg); len(changed) > 0 {
			s.log.Warn("settings differ from those of the newest generation, which keeps serving until the next "+
				"refresh; 'giantstream rebuild' makes one with these now", "generation", newest.Generation,
				"differences", changed)
		}
	}
}

const becauseUnfinished = "an unfinished generation is there to resume"

// refresh takes the refresh lease. If a generation is still due by then, it builds one on the
// newest cut, or finishes the unfinished one, and makes it current. It returns lease.ErrHeld if
// another process has the lease, and lease.ErrLost if another process has taken it over from this
// one.
func (s *Service) refresh(ctx context.Context,
	due func(context.Context) (bool, string, error)) (built bool, err error) {
	held, err := s.lease.Acquire(ctx)
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
	if err := s.loadCurrent(ctx); err != nil {
		return false, err
	}
	yes, why, err := due(ctx)
	if err != nil || !yes {
		return false, err
	}
	s.metrics.building.Set(1)
	defer s.metrics.building.Set(0)
	defer s.live.Progress.Done()
	s.log.Info("building a generation", "because", why, "lease", held.Number())
	s.because = why
	store := held.Store()
	if _, err := s.build(ctx, store, why); err != nil {
		return false, err
	}
	if err := s.loadCurrent(ctx); err != nil {
		return false, err
	}
	removed, err := generation.Prune(ctx, store, s.settings.get().Refresh.Keep)
	if err != nil {
		s.log.Warn("old generations could not be removed; the next refresh tries again", "error", err)
	} else if len(removed) > 0 {
		s.log.Info("old generations removed", "generations", removed)
	}
	return true, nil
}

// build builds the next generation, or finishes the unfinished one.
func (s *Service) build(ctx context.Context, store sink.Store, why string) (*generation.Doc, error) {
	ctx, progress, trace := s.traces.Build(ctx, s.progress, why)
	doc, err := s.finishStaged(ctx, store)
	if errors.Is(err, staged.ErrNoPlan) {
		builder := wiring.NewBuilder(s.settings.get(), store, s.device, progress, s.log)
		builder.Because, builder.Warm = why, s.startsWarm()
		doc, err = builder.BuildNext(ctx, s.cut, generation.UntilReady)
	}
	if err == nil {
		trace.Built(doc.Generation, doc.Encoder.Kind, doc.Graph.Nodes, string(doc.Status))
	}
	trace.End(err)
	return doc, err
}

// startsWarm says whether the next generation may start from what the one before has learned.
func (s *Service) startsWarm() bool {
	s.drift.mu.Lock()
	rows, nodes := s.drift.rows, s.drift.nodes
	s.drift.mu.Unlock()
	return s.settings.get().Refresh.WarmStart == config.WarmAuto && s.becauseDrifted(rows, nodes) == ""
}

// Because returns why this process has built its last generation, "" if it has built none.
func (s *Service) Because() string { return s.because }

// elsewhere reports whether err means that another process is building a generation. It logs each
// holder once.
func (s *Service) elsewhere(err error) bool {
	var by *lease.HeldError
	switch {
	case errors.Is(err, lease.ErrLost):
		s.log.Warn("another process has taken the refresh over; what it finishes is served", "error", err)
	case errors.As(err, &by):
		if by.Number != s.builder {
			s.builder = by.Number
			s.log.Info("another process is building a generation", "holder", by.Holder, "lease", by.Number)
		}
	default:
		return false
	}
	return true
}

// cut is the source for a build: the given cut, or the newest one.
func (s *Service) cut(ctx context.Context, at map[int]int64) (generation.Source, error) {
	return logview.At(ctx, s.store, s.cfg.Shards, at)
}

// loadCurrent makes current what the store says is to be served, and notes what is newer and is not. A generation that
// turns out to be damaged is passed over.
func (s *Service) loadCurrent(ctx context.Context) error {
	for {
		latest, err := generation.Newest(ctx, s.store)
		if err != nil {
			return err
		}
		s.refuse(latest.Refused)
		s.noteDamage(latest.Damaged)
		s.noteHeld(latest.Held)
		s.last.Store(latest.Last())
		s.passedOver.Store(latest.PassedOver())
		doc := latest.Current
		if doc == nil || s.serving.number() == doc.Generation {
			again, err := s.try(ctx, latest.Canary)
			if again && err == nil {
				continue
			}
			return err
		}
		if warning := doc.Warning(); warning != "" {
			s.log.Warn("the generation served is worse than text alone", "generation", doc.Generation,
				"because", warning)
		}
		err = s.serve(ctx, doc)
		if err == nil {
			continue // with the one on trial
		}
		if !errors.Is(err, generation.ErrDamaged) {
			return err
		}
		if err := s.condemn(ctx, doc, err, func() error { return s.serve(ctx, doc) }); err != nil {
			return err
		}
	}
}

// try gives a share of the nodes or the canary topic the generation on trial, nil for none. again says that it has
// turned out to be damaged, so that it is no more.
func (s *Service) try(ctx context.Context, doc *generation.Doc) (again bool, err error) {
	now := int64(0)
	if t := s.serving.trial.Load(); t != nil {
		now = t.Doc.Generation
	}
	if doc == nil {
		if now > 0 {
			s.log.Info("the trial of a generation has ended", "generation", now)
			s.tries(nil)
		}
		return false, nil
	}
	if doc.Generation == now {
		return false, nil
	}
	where := "a share of the nodes"
	if doc.CanaryTopic {
		where = "the canary topic"
	}
	open := func() error {
		g, err := generation.Open(ctx, s.store, doc, s.device)
		if err == nil {
			s.log.Info(where+" gets a new generation first; 'giantstream generations promote' has it served to "+
				"all, and 'rollback' takes it back", "generation", doc.Generation, "share", doc.Canary)
			s.tries(g)
		}
		return err
	}
	if err = open(); errors.Is(err, generation.ErrDamaged) {
		return true, s.condemn(ctx, doc, err, open)
	}
	return false, err
}

// tries has the followers use a generation on trial, nil for none.
func (s *Service) tries(g *generation.Generation) {
	s.serving.trial.Store(g)
	number := 0.0
	if g != nil {
		number = float64(g.Doc.Generation)
	}
	s.metrics.canary.Set(number)
	s.wake.all()
}

// noteHeld notes the newest generation that is ready and, by a choice of people, not served; nil for none.
func (s *Service) noteHeld(doc *generation.Doc) {
	number := int64(0)
	if doc != nil {
		number = doc.Generation
		if s.held != number {
			s.log.Info("a generation is ready and not served: it was withdrawn, or another one is pinned",
				"generation", number)
		}
	}
	s.held = number
	s.metrics.held.Set(float64(number))
}

// refuse notes the newest refused generation, nil for none.
func (s *Service) refuse(doc *generation.Doc) {
	s.refused.Store(doc)
	number := 0.0
	if doc != nil {
		number = float64(doc.Generation)
	}
	s.metrics.refused.Set(number)
}

// Refused returns the generation that the quality gate has refused after the one that is served, nil
// for none.
func (s *Service) Refused() *generation.Doc { return s.refused.Load() }

// serve makes a ready generation current.
func (s *Service) serve(ctx context.Context, doc *generation.Doc) error {
	before := s.serving.number()
	g, err := generation.Open(ctx, s.store, doc, s.device)
	if err != nil {
		return err
	}
	g.UnknownLabels, g.NGrams = &s.metrics.unknownLabels, &s.metrics.ngrams
	s.drift.serves(doc, &s.metrics.ngrams)
	s.serving.current.Store(g)
	if before > doc.Generation {
		s.log.Info("an older generation is served again, and its embeddings are published again", "generation",
			doc.Generation, "before", before)
	}
	if stored := doc.Settings.Stored; s.serving.asked.Within(stored).String() != s.serving.asked.String() {
		s.log.Warn("this generation's embeddings were stored smaller than sink.embedding_type and "+
			"sink.embedding_dim now ask for; "+
			"the next generation will have what they say", "generation", doc.Generation,
			"published", s.serving.asked.Within(stored).String(), "configured", s.serving.asked.String())
	}
	s.metrics.generation.Set(float64(doc.Generation))
	s.metrics.shortfalls.Set(float64(len(doc.Shortfalls)))
	s.metrics.compared(doc.Overlap)
	s.wake.all()
	return nil
}
