package service

import (
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"giantstream/cmd/internal/service/ingesting"
	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
	"giantstream/stream/commitlog/checkpoint"
)

// Each shard is kept warm by a worker that does not have it. When a worker goes, its shard goes to the one that
// keeps it warm.
func TestStandbysTakeOver(t *testing.T) {
	if testing.Short() {
		t.Skip("runs three workers")
	}
	brokers, _ := testBroker(t)
	store := &memstore.Store{}
	cfg := reshardConfig(t, brokers, 3)
	cfg.Stream.Standby, cfg.State.CheckpointEvery = 1, time.Second
	var all []*Service
	start := func() *Service {
		mine := cfg
		mine.StateDir = filepath.Join(t.TempDir(), "state")
		s, err := Start(t.Context(), Options{Config: &mine, Store: store, Log: slog.New(slog.DiscardHandler),
			standbyEvery: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for range 3 {
		all = append(all, start())
	}
	statements := statementsOfAGraph()
	half := len(statements) / 2
	sendStatements(t, &cfg, all[0].client, statements[:half])
	finish(t, all)
	eventually(t, "each worker has a shard, and each shard is kept warm by one that does not have it", func() bool {
		warm := map[int]bool{}
		for _, s := range all {
			own := s.ingest.Watches.States()
			if len(own) != 1 {
				return false
			}
			for _, p := range s.ingest.Standbys.Warm() {
				if p == own[0].Shard {
					return false
				}
				warm[p] = true
			}
		}
		for p := range cfg.Shards { // at the newest checkpoint
			claim, err := checkpoint.ReadStandby(t.Context(), store, p)
			newest, cerr := checkpoint.Newest(t.Context(), store, p)
			if err != nil || cerr != nil || newest == nil || claim.Number != newest.Number || !warm[p] {
				return false
			}
			head, err := commitlog.Head(t.Context(), store, p)
			if err != nil || newest.Seq < head.Seq {
				return false
			}
		}
		return true
	})
	gone := all[0].ingest.Watches.States()[0].Shard
	keeps := func(s *Service) bool { return slices.Contains(s.ingest.Standbys.Warm(), gone) }
	keeper := all[1+slices.IndexFunc(all[1:], keeps)]
	if err := all[0].Close(); err != nil {
		t.Fatal(err)
	}
	all = all[1:]
	eventually(t, "the worker that kept the shard warm has it", func() bool {
		return slices.ContainsFunc(keeper.ingest.Watches.States(), func(w ingesting.ShardState) bool {
			return w.Shard == gone && w.Ready
		})
	})
	sendStatements(t, &cfg, all[0].client, statements[half:])
	finish(t, all)
	got := portray(t, &cfg, all[0].client, store)
	for _, s := range all {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if want := unsharded(t); got.hash != want.hash {
		t.Errorf("graph %s, want %s", got.hash, want.hash)
	}
}
