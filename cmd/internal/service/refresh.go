package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"giantstream/config"
	"giantstream/sink"
	"giantstream/sink/lease"
	"giantstream/train"
	"giantstream/train/generation"
)

// refreshPoll is how often the service looks whether a new generation is due.
const refreshPoll = 2 * time.Second

// Run serves until ctx ends or the service fails: embeddings follow the
// changes, and a new generation starts by itself once enough has changed
// (refresh.min_changes, refresh.max_age), in whichever process of the pipeline
// gets the refresh lease first. While it trains, the current one keeps serving.
func (s *Service) Run(ctx context.Context) error {
	const first, longest = 10 * time.Second, 10 * time.Minute
	pause, again := first, time.Time{} // the next pause after a failure; no refresh before again
	tick := time.NewTicker(refreshPoll)
	defer tick.Stop()
	for {
		// Another process, or a command, may have finished a generation; it
		// is served even while this process waits to try again itself.
		if err := s.loadCurrent(ctx); err != nil {
			s.log.Warn("cannot look for a newer generation, trying again", "in", refreshPoll, "error", err)
		} else if s.roles.Refresh && !time.Now().Before(again) {
			switch err := s.refreshIfDue(ctx); {
			case err == nil, s.elsewhere(err):
				pause = first
			case ctx.Err() != nil:
			case errors.Is(err, generation.ErrTooFew):
				s.log.Info("nothing to learn from yet", "retry_in", first, "reason", err)
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

// refreshDue reports whether a new generation should start now, and why.
func (s *Service) refreshDue(ctx context.Context) (bool, string, error) {
	unfinished, _, err := generation.Next(ctx, s.store)
	if err != nil {
		return false, "", err
	}
	if unfinished != nil {
		return true, becauseUnfinished, nil
	}
	changes, nodes, err := s.changes(ctx)
	if err != nil || changes == 0 {
		return false, "", err
	}
	current := s.serving.current.Load()
	if current == nil {
		if nodes < int64(s.cfg.Refresh.MinNodes) {
			return false, "", nil
		}
		// The first generation waits for the backlog: fitted on half a
		// catalog it would be thrown away at once.
		_, open, err := s.backlog(ctx)
		return err == nil && open == 0, fmt.Sprintf("%d nodes and no generation yet", nodes), err
	}
	need := s.cfg.Refresh.MinChanges
	if need < 1 {
		need *= float64(nodes)
	}
	age := time.Since(current.Doc.Created)
	switch {
	case float64(changes) >= need:
		return true, fmt.Sprintf("%d rows changed since generation %d", changes, current.Doc.Generation), nil
	case age >= s.cfg.Refresh.MaxAge:
		return true, fmt.Sprintf("generation %d is %s old", current.Doc.Generation, age.Round(time.Second)), nil
	}
	return false, "", nil
}

// changes counts the rows committed since the current generation's cut (since
// the beginning, without one), and the live nodes.
func (s *Service) changes(ctx context.Context) (changed, nodes int64, err error) {
	var cut map[int]int64
	if g := s.serving.current.Load(); g != nil {
		cut = g.Doc.Cut
	}
	for p := range s.cfg.Shards {
		head, err := s.heads.get(ctx, s.store, p)
		if err != nil {
			return 0, 0, err
		}
		if head == nil {
			continue
		}
		nodes += head.Nodes
		rows, err := s.heads.rowsSince(ctx, s.store, p, cut[p])
		if err != nil {
			return 0, 0, err
		}
		changed += rows
	}
	return changed, nodes, nil
}

// UpToDate brings the embeddings up to everything committed: it finishes an
// unfinished generation, and builds a new one if rows have changed since, or
// waits for the process that does; without the role, it always waits. It returns the generation that is current
// then, and whether this process has built one.
func (s *Service) UpToDate(ctx context.Context) (doc *generation.Doc, built bool, err error) {
	err = s.poll(ctx, "bring the embeddings up to date", func() (bool, error) {
		for {
			if err := s.loadCurrent(ctx); err != nil {
				return false, err
			}
			if due, _, err := s.outdated(ctx); err != nil || !due {
				return err == nil, err
			}
			if !s.roles.Refresh {
				return false, nil
			}
			here, err := s.refresh(ctx, s.outdated)
			if err != nil {
				if s.elsewhere(err) {
					err = nil // look again later
				}
				return false, err
			}
			built = built || here
		}
	})
	if err != nil {
		return nil, false, err
	}
	if g := s.Current(); g != nil {
		return g.Doc, built, nil
	}
	return nil, false, fmt.Errorf("%w: no node has arrived; check the topics, the field mapping and the dead letters", generation.ErrTooFew)
}

// outdated reports whether anything committed is missing in the current
// generation, and what.
func (s *Service) outdated(ctx context.Context) (bool, string, error) {
	unfinished, _, err := generation.Next(ctx, s.store)
	if err != nil {
		return false, "", err
	}
	if unfinished != nil {
		return true, becauseUnfinished, nil
	}
	changes, _, err := s.changes(ctx)
	return changes > 0, fmt.Sprintf("%d rows changed", changes), err
}

const becauseUnfinished = "an unfinished generation is there to resume"

// refresh takes the refresh lease and, if a generation is still due then,
// builds one on the newest cut, or finishes the unfinished one, and makes it
// current. It returns lease.ErrHeld if another process has the lease, and
// lease.ErrLost if another process has taken it over from this one.
func (s *Service) refresh(ctx context.Context, due func(context.Context) (bool, string, error)) (built bool, err error) {
	held, err := s.lease.Acquire(ctx)
	if err != nil {
		return false, err
	}
	ctx, release := held.Keep(ctx)
	defer release()
	defer func() {
		if lost := context.Cause(ctx); err != nil && errors.Is(lost, lease.ErrLost) {
			err = lost // not that its context has ended
		}
	}()
	// Until now another process may have been at it.
	if err := s.loadCurrent(ctx); err != nil {
		return false, err
	}
	yes, why, err := due(ctx)
	if err != nil || !yes {
		return false, err
	}
	s.metrics.building.Set(1)
	defer s.metrics.building.Set(0)
	s.log.Info("building a generation", "because", why, "lease", held.Number())
	store := held.Store()
	doc, err := NewBuilder(s.cfg, store, s.progress, s.log).BuildNext(ctx, s.cut, generation.UntilReady)
	if err != nil {
		return false, err
	}
	if err := s.serve(ctx, doc); err != nil {
		return false, err
	}
	removed, err := generation.Prune(ctx, store, s.cfg.Refresh.Keep)
	if err != nil {
		s.log.Warn("old generations could not be removed; the next refresh tries again", "error", err)
	} else if len(removed) > 0 {
		s.log.Info("old generations removed", "generations", removed)
	}
	return true, nil
}

// elsewhere reports whether err means that another process is building, and
// says so in the log, once per holder.
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
	return SourceAt(ctx, s.store, s.cfg.Shards, at)
}

// NewBuilder returns a builder of the generations that the configuration
// describes. The store should be a lease's.
func NewBuilder(cfg *config.Config, store sink.Store, p train.Progress, log *slog.Logger) *generation.Builder {
	return &generation.Builder{Store: store, Settings: SettingsOf(cfg), Workers: cfg.Train.Threads,
		MemoryLimit: int64(cfg.Featurize.MemoryLimit), CheckpointEvery: cfg.Train.CheckpointEvery, Progress: p, Log: log, Now: time.Now}
}

// SettingsOf returns what the configuration says about generations.
func SettingsOf(cfg *config.Config) generation.Settings {
	f := cfg.Featurize
	s := generation.Settings{
		Profile: f.Profile, MaxDegree: f.MaxDegree, ProjectionDim: f.ProjectionDim,
		PIFADim: f.PIFA.Dim, Weighting: f.PIFA.Weighting, LabelFeatures: f.LabelFeatures,
		LeafSize: f.Tree.LeafSize, Branching: f.Tree.Branching, TreeSeed: f.Tree.Seed,
		Encoder: cfg.Train.Encoder, Epochs: cfg.Train.Epochs, Seed: cfg.Train.Seed,
		Holdout: cfg.Evaluate.HoldoutEdges, ProbeRates: cfg.Evaluate.ProbeRates, EvalSeed: cfg.Evaluate.Seed,
	}
	if b := cfg.Train.BERT; b.Model != "" {
		s.BERT = &generation.BERT{
			Model: b.Model, Pooling: b.Pooling, MaxTokens: b.MaxTokens, Dropout: b.Dropout, DropTokens: b.DropTokens, NGrams: b.NGrams, CoarseToFine: b.CoarseToFine,
		}
	}
	return s
}

// loadCurrent makes the store's newest ready generation current.
func (s *Service) loadCurrent(ctx context.Context) error {
	doc, err := generation.Current(ctx, s.store)
	if errors.Is(err, generation.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.serve(ctx, doc)
}

// serve makes a ready generation current.
func (s *Service) serve(ctx context.Context, doc *generation.Doc) error {
	if s.serving.number() >= doc.Generation {
		return nil
	}
	g, err := generation.Open(ctx, s.store, doc)
	if err != nil {
		return err
	}
	g.UnknownLabels, g.NGrams = &s.metrics.unknownLabels, &s.metrics.ngrams
	s.serving.current.Store(g)
	s.metrics.generation.Set(float64(doc.Generation))
	s.wake.all()
	return nil
}
