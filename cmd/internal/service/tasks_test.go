package service

import (
	"log/slog"
	"testing"

	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/taskqueue"
	"giantstream/sink/memstore"
	"giantstream/train/generation/build"
	"giantstream/train/generation/build/stages"
)

// begunBuild is a service of these roles that has taken in a graph, and a build of it that has begun.
func begunBuild(t *testing.T, names string, partitions int) (*Service, *config.Config, *build.Worker, stages.Plan) {
	t.Helper()
	store := &memstore.Store{}
	roles, err := ParseRoles(names)
	if err != nil {
		t.Fatal(err)
	}
	s, cfg := testServiceWith(t, store, roles)
	produceGraph(t, s, cfg)
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	coordinator := s.refresh.TaskWorker(store)
	request := wiring.RequestOf(cfg)
	request.Shards, request.Partitions = cfg.Shards, partitions
	plan, err := coordinator.Begin(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return s, cfg, coordinator, plan
}

// TestRoleBuildDoesTheTasksOfACoordinator: the coordinator does none itself, and the generation is complete.
func TestRoleBuildDoesTheTasksOfACoordinator(t *testing.T) {
	s, cfg, coordinator, plan := begunBuild(t, "stream,embed,build", 4)
	engine := &taskqueue.Engine{Queue: wiring.TaskQueue(cfg, s.Client(), slog.New(slog.DiscardHandler))}
	doc, err := coordinator.Run(t.Context(), plan, engine, coordinator, nil, stages.Finish)
	if err != nil {
		t.Fatal(err)
	}
	if !doc.Complete() || doc.Generation != plan.Generation || doc.Graph.Nodes != nodes {
		t.Errorf("generation %d of %d nodes is %s", doc.Generation, doc.Graph.Nodes, doc.Status)
	}
}

// TestRefreshFinishesAStagedBuildAsOne: a build in one process would divide the embeddings by shards alone.
func TestRefreshFinishesAStagedBuildAsOne(t *testing.T) {
	s, cfg, _, plan := begunBuild(t, "stream,refresh,embed", 8)
	doc, built, err := s.UpToDate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !built || doc.Generation != plan.Generation || len(doc.Embeddings) <= cfg.Shards {
		t.Errorf("built %v: generation %d with %d parts", built, doc.Generation, len(doc.Embeddings))
	}
}
