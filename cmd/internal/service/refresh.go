package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"giantstream/config"
	"giantstream/train/generation"
)

// refreshPoll is how often the service looks whether a new generation is due.
const refreshPoll = 2 * time.Second

// Run serves until ctx ends or the service fails: embeddings follow the
// changes, and a new generation starts by itself once enough has changed
// (refresh.min_changes, refresh.max_age). While it trains, the current one
// keeps serving.
func (s *Service) Run(ctx context.Context) error {
	const first, longest = 10 * time.Second, 10 * time.Minute
	pause := first
	tick := time.NewTicker(refreshPoll)
	defer tick.Stop()
	for {
		// Another process, or a command, may have finished a generation.
		err := s.loadCurrent(ctx)
		var due bool
		var why string
		if err == nil {
			due, why, err = s.refreshDue(ctx)
		}
		if err == nil && due {
			s.log.Info("starting a new generation", "because", why)
			_, err = s.Refresh(ctx)
		}
		wait := tick.C
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			s.log.Error("refresh failed; the current generation keeps serving", "retry_in", pause, "error", err)
			wait, pause = time.After(pause), min(2*pause, longest)
		default:
			pause = first
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.failed:
			return s.failure()
		case <-wait:
		}
	}
}

// refreshDue reports whether a new generation should start now, and why.
func (s *Service) refreshDue(ctx context.Context) (bool, string, error) {
	unfinished, _, err := generation.Next(ctx, s.store)
	if err != nil {
		return false, "", err
	}
	if unfinished != nil {
		return true, "an unfinished generation is there to resume", nil
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
// unfinished generation, and builds a new one if rows have changed since. It
// returns the generation that is current then, and whether it is new.
func (s *Service) UpToDate(ctx context.Context) (doc *generation.Doc, built bool, err error) {
	for {
		unfinished, _, err := generation.Next(ctx, s.store)
		if err != nil {
			return nil, false, err
		}
		changes, _, err := s.changes(ctx)
		if err != nil {
			return nil, false, err
		}
		if unfinished == nil && changes == 0 {
			if g := s.Current(); g != nil {
				return g.Doc, built, nil
			}
			return nil, false, fmt.Errorf("%w: no node has arrived; check the topics, the field mapping and the dead letters", generation.ErrTooFew)
		}
		if _, err := s.Refresh(ctx); err != nil {
			return nil, false, err
		}
		built = true
	}
}

// Refresh builds a generation on the newest cut, or finishes the unfinished
// one, and makes it current.
func (s *Service) Refresh(ctx context.Context) (*generation.Doc, error) {
	doc, err := s.Builder().BuildNext(ctx, s.cut, generation.UntilReady)
	if err != nil {
		return nil, err
	}
	if err := s.serve(ctx, doc); err != nil {
		return nil, err
	}
	removed, err := generation.Prune(ctx, s.store, s.cfg.Refresh.Keep)
	if err != nil {
		s.log.Warn("old generations could not be removed; the next refresh tries again", "error", err)
	} else if len(removed) > 0 {
		s.log.Info("old generations removed", "generations", removed)
	}
	return doc, nil
}

// cut is the source for a build: the given cut, or the newest one.
func (s *Service) cut(ctx context.Context, at map[int]int64) (generation.Source, error) {
	return SourceAt(ctx, s.store, s.cfg.Shards, at)
}

// Builder returns a builder of this pipeline's generations.
func (s *Service) Builder() *generation.Builder {
	return &generation.Builder{Store: s.store, Settings: SettingsOf(s.cfg), Workers: s.cfg.Train.Threads,
		MemoryLimit: int64(s.cfg.Featurize.MemoryLimit), CheckpointEvery: s.cfg.Train.CheckpointEvery, Progress: s.progress, Log: s.log, Now: time.Now}
}

// SettingsOf returns what the configuration says about generations.
func SettingsOf(cfg *config.Config) generation.Settings {
	f := cfg.Featurize
	return generation.Settings{
		Profile: f.Profile, MaxDegree: f.MaxDegree, ProjectionDim: f.ProjectionDim,
		PIFADim: f.PIFA.Dim, Weighting: f.PIFA.Weighting, LabelFeatures: f.LabelFeatures,
		LeafSize: f.Tree.LeafSize, Branching: f.Tree.Branching, TreeSeed: f.Tree.Seed,
		Encoder: cfg.Train.Encoder, Epochs: cfg.Train.Epochs, Seed: cfg.Train.Seed,
		Holdout: cfg.Evaluate.HoldoutEdges, ProbeRates: cfg.Evaluate.ProbeRates, EvalSeed: cfg.Evaluate.Seed,
	}
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
	g.UnknownLabels = &s.metrics.unknownLabels
	s.serving.current.Store(g)
	s.metrics.generation.Set(float64(doc.Generation))
	s.wake.all()
	return nil
}
