package service

import (
	"log/slog"
	"testing"

	"giantstream/cmd/internal/wiring"
	"giantstream/ingest/taskqueue"
	"giantstream/sink/memstore"
	"giantstream/train/generation/staged"
)

// TestRoleBuildDoesTheTasksOfACoordinator: the coordinator does none itself, and the generation is complete.
func TestRoleBuildDoesTheTasksOfACoordinator(t *testing.T) {
	store := &memstore.Store{}
	roles, err := ParseRoles("stream,embed,build")
	if err != nil {
		t.Fatal(err)
	}
	s, cfg := testServiceWith(t, store, roles)
	produceGraph(t, s, cfg)
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	now, err := SourceAt(t.Context(), store, cfg.Shards, nil)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	coordinator := s.taskWorker(store)
	plan, err := coordinator.Begin(t.Context(), wiring.NewBuilder(cfg, store, nil, s.progress, log),
		staged.Options{Cut: now.Cut(), Shards: cfg.Shards, Partitions: 4})
	if err != nil {
		t.Fatal(err)
	}
	engine := &taskqueue.Engine{Queue: wiring.TaskQueue(cfg, s.Client(), log)}
	doc, err := coordinator.Run(t.Context(), plan, engine, coordinator, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !doc.Complete() || doc.Generation != plan.Generation || doc.Graph.Nodes != nodes {
		t.Errorf("generation %d of %d nodes is %s", doc.Generation, doc.Graph.Nodes, doc.Status)
	}
}

// TestRefreshFinishesAStagedBuildAsOne: a build in one process would divide the embeddings by shards alone.
func TestRefreshFinishesAStagedBuildAsOne(t *testing.T) {
	store := &memstore.Store{}
	roles, err := ParseRoles("stream,refresh,embed")
	if err != nil {
		t.Fatal(err)
	}
	s, cfg := testServiceWith(t, store, roles)
	produceGraph(t, s, cfg)
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	now, err := SourceAt(t.Context(), store, cfg.Shards, nil)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	builder := wiring.NewBuilder(cfg, store, nil, s.progress, log)
	plan, err := s.taskWorker(store).Begin(t.Context(), builder,
		staged.Options{Cut: now.Cut(), Shards: cfg.Shards, Partitions: 8})
	if err != nil {
		t.Fatal(err)
	}
	doc, built, err := s.UpToDate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !built || doc.Generation != plan.Generation || len(doc.Embeddings) <= cfg.Shards {
		t.Errorf("built %v: generation %d with %d parts", built, doc.Generation, len(doc.Embeddings))
	}
}
