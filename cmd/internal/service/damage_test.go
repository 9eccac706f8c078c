package service

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"giantstream/cmd/internal/logview"
	"giantstream/config"
	"giantstream/internal/race"
	"giantstream/internal/retry"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/sink/rows/rowstest"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
)

// restartable is a pipeline that is started again and again on one store and one broker.
type restartable struct {
	cfg   *config.Config
	store *memstore.Store
}

// twoGenerations runs a pipeline until it has two generations, and stops it.
func twoGenerations(t *testing.T) *restartable {
	t.Helper()
	r := &restartable{store: &memstore.Store{}}
	cfg := config.Default()
	dir := t.TempDir()
	cfg.Pipeline, cfg.Shards, cfg.HTTP.Listen = "test", 2, ""
	cfg.StateDir, cfg.Kafka.DataDir = dir+"/state", dir+"/broker"
	cfg.Evaluate.HoldoutEdges, cfg.Train.Encoder, cfg.Refresh.MinChanges = 0, "linear", 1e9
	r.cfg = &cfg
	r.run(t, func(s *Service) error {
		produceGraph(t, s, r.cfg)
		if err := upToDate(t, s, 1); err != nil {
			return err
		}
		r.change(t, s, 1)
		return upToDate(t, s, 2)
	})
	return r
}

// change sends some nodes with new texts.
func (r *restartable) change(t *testing.T, s *Service, round int) {
	t.Helper()
	texts := map[string]any{}
	for i := range 40 {
		texts[nodeID(i)] = map[string]any{"id": nodeID(i), "text": text(i+round, i%4), "label": fmt.Sprint(i % 4)}
	}
	produce(t, s, r.cfg.Kafka.Topics.Nodes, texts)
}

func (r *restartable) run(t *testing.T, do func(*Service) error) {
	t.Helper()
	if err := r.try(t, do); err != nil {
		t.Fatal(err)
	}
}

func (r *restartable) try(t *testing.T, do func(*Service) error) error {
	t.Helper()
	s, err := Start(t.Context(), Options{Config: r.cfg, Store: r.store, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	err = do(s)
	if closed := s.Close(); closed != nil && err == nil {
		err = closed
	}
	return err
}

// upToDate is what run --until-idle does, and wants that generation.
func upToDate(t *testing.T, s *Service, want int64) error {
	t.Helper()
	if err := s.Drain(t.Context()); err != nil {
		return err
	}
	doc, _, err := s.UpToDate(t.Context())
	if err != nil {
		return err
	}
	if err := s.WaitPublished(t.Context()); err != nil {
		return err
	}
	if got := s.served.Number(); want > 0 && got != want {
		t.Errorf("generation %d is served (%d was built), want %d", got, doc.Generation, want)
	}
	return nil
}

func damage(t *testing.T, store sink.Store, key string) {
	t.Helper()
	data, err := sink.ReadAll(t.Context(), store, key)
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.Clone(data)
	data[len(data)/2] ^= 4
	if err := sink.PutBytes(t.Context(), store, key, data); err != nil {
		t.Fatal(err)
	}
}

// A current generation that is damaged, in whatever object, does not stop the service: the one before it is
// served, and it is built again as a new one.
func TestDamagedGenerationIsReplaced(t *testing.T) {
	race.SkipComputing(t)
	r := twoGenerations(t)
	next := int64(2)
	for _, name := range []string{"tree", "vectorizer", "projection", "labels.parquet", "encoder/config.json",
		"encoder/model.safetensors", "generation.json"} {
		damage(t, r.store, generation.Prefix(next)+name)
		var before int64
		r.run(t, func(s *Service) error {
			before = s.served.Number()
			if got := gauge(t, s, "giantstream_generation_damaged"); got != float64(next) {
				t.Errorf("%s: the metric says %g is damaged, want %d", name, got, next)
			}
			err := upToDate(t, s, next+1)
			if got := gauge(t, s, "giantstream_generation_damaged"); got != 0 {
				t.Errorf("%s: built again, and the metric says %g is damaged", name, got)
			}
			return err
		})
		if before != 1 { // the only whole one
			t.Errorf("%s damaged: generation %d was served at the start, want 1", name, before)
		}
		next++
	}
}

// The first generation has none before it.
func TestDamagedFirstGenerationDoesNotStopIngest(t *testing.T) {
	r := twoGenerations(t)
	for g := range int64(2) {
		if err := r.store.Delete(t.Context(), generation.Prefix(g+1)+"tree"); err != nil {
			t.Fatal(err)
		}
	}
	r.run(t, func(s *Service) error {
		if s.Current() != nil {
			t.Errorf("generation %d is served", s.served.Number())
		}
		return upToDate(t, s, 3)
	})
}

// A choice that cannot be read stops no ingest. The generation that is served stays; a process that starts serves none
// and publishes nothing. Both say so until the choice is mended.
func TestDamagedChoiceDoesNotStopIngest(t *testing.T) {
	r := twoGenerations(t)
	choose := generation.Chooser{Store: r.store, Now: time.Now}
	if _, err := choose.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	const key = "generations/choice.json"
	good := read(t, r.store, key)
	ingests := func(s *Service, round int, served int64) {
		t.Helper()
		before := lastManifest(t, r.store, 0)
		r.change(t, s, round)
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if lastManifest(t, r.store, 0) == before {
			t.Error("nothing was committed")
		}
		if _, _, err := s.UpToDate(t.Context()); !errors.Is(err, generation.ErrChoiceDamaged) {
			t.Errorf("brought up to date: %v", err)
		}
		if got := s.served.Number(); got != served {
			t.Errorf("generation %d is served, want %d", got, served)
		}
		if why := s.Unready(t.Context()); !strings.Contains(why, key) {
			t.Errorf("ready: %q", why)
		}
	}
	mend := func(s *Service) {
		t.Helper()
		write(t, r.store, key, good)
		if err := s.refresh.Load(t.Context()); err != nil || s.served.Number() != 1 || s.Unready(t.Context()) != "" {
			t.Errorf("mended: %v, generation %d is served, %q", err, s.served.Number(), s.Unready(t.Context()))
		}
	}
	r.run(t, func(s *Service) error {
		damage(t, r.store, key)
		ingests(s, 2, 1)
		if err := waitPublishedWith(t, s, 1); err != nil {
			return err
		}
		mend(s)
		return nil
	})
	damage(t, r.store, key)
	r.run(t, func(s *Service) error {
		ingests(s, 3, 0)
		mend(s)
		return waitPublishedWith(t, s, 1)
	})
}

// Damaged embeddings come to light when they are to be published again.
func TestDamagedEmbeddingsAreMadeAgain(t *testing.T) {
	race.SkipComputing(t)
	r := twoGenerations(t)
	doc, err := generation.Load(t.Context(), r.store, 2)
	if err != nil {
		t.Fatal(err)
	}
	damage(t, r.store, doc.Embeddings[0].Key)
	for shard := range r.cfg.Shards {
		if err := r.store.Delete(t.Context(), fmt.Sprintf("shards/%d/published.json", shard)); err != nil {
			t.Fatal(err)
		}
	}
	r.run(t, func(s *Service) error {
		err := upToDate(t, s, 3)
		for id, record := range sinkTopic(t, s, r.cfg) {
			if record.Generation != 3 {
				t.Errorf("%s was last published with generation %d", id, record.Generation)
			}
		}
		return err
	})
}

// Until there is a new generation, the topic has the embeddings of the one before, and of no other.
func TestFollowersFallBackAsAWhole(t *testing.T) {
	r := twoGenerations(t)
	damage(t, r.store, generation.Prefix(2)+"tree")
	r.run(t, func(s *Service) error {
		r.change(t, s, 2)
		if err := s.Drain(t.Context()); err != nil {
			return err
		}
		if err := waitPublishedWith(t, s, 1); err != nil {
			return err
		}
		for id, record := range sinkTopic(t, s, r.cfg) {
			if record.Generation != 1 {
				t.Errorf("%s was last published with generation %d", id, record.Generation)
			}
		}
		return nil
	})
}

// waitPublishedWith waits until the rows of all shards are published with a generation.
func waitPublishedWith(t *testing.T, s *Service, g int64) error {
	defer s.publish.Hurry()()
	return retry.Poll(t.Context(), publishedPoll, func() (bool, error) {
		for p := range s.cfg.Shards {
			head, err := commitlog.Head(t.Context(), s.store, p)
			if err != nil {
				return false, err
			}
			at, err := commitlog.LoadPublished(t.Context(), s.store, p)
			if err != nil || at.Generation != g || at.Seq < head.Seq {
				return false, err
			}
		}
		return true, nil
	})
}

// Row objects that somebody has written anew train no generation, and are published by nobody. The command ends
// with an error that names the object.
func TestRewrittenRowsEndTheRun(t *testing.T) {
	r := twoGenerations(t)
	const damaged = "shards/0/rows/"
	rewritten := 0
	for info, err := range r.store.List(t.Context(), damaged, "") {
		if err != nil {
			t.Fatal(err)
		}
		rowstest.Put(t, r.store, info.Key, []rows.Row{{NodeID: nodeID(0), Text: "poison"}})
		rewritten++
	}
	if rewritten == 0 {
		t.Fatal("no row object has been rewritten")
	}
	err := r.try(t, func(s *Service) error {
		r.change(t, s, 2)
		return upToDate(t, s, 0)
	})
	if !errors.Is(err, sink.ErrDamaged) || !strings.Contains(err.Error(), damaged) {
		t.Errorf("error %v, want one that names the object", err)
	}
	if numbers, err := generation.Numbers(t.Context(), r.store); err != nil || len(numbers) > 3 {
		t.Errorf("generations %v (%v)", numbers, err)
	}
	if doc, err := generation.Current(t.Context(), r.store); err != nil || doc.Generation != 2 {
		t.Errorf("current generation %v (%v), want 2", doc, err)
	}
	// With the generation published anew, followers need the rows, too.
	if err := r.store.Delete(t.Context(), "shards/0/published.json"); err != nil {
		t.Fatal(err)
	}
	err = r.try(t, func(s *Service) error { return s.WaitPublished(t.Context()) })
	if !errors.Is(err, sink.ErrDamaged) {
		t.Errorf("waiting for embeddings of damaged rows: %v", err)
	}
}

// The newest manifests of a log are gone, and with them what they covered, while the topics may have
// forgotten the records. With the local state or without, the run says so instead of going on before them.
func TestALogThatLostItsEndStopsTheRun(t *testing.T) {
	r := twoGenerations(t)
	lost := lastManifest(t, r.store, 0)
	if err := r.store.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	err := r.try(t, func(s *Service) error { return upToDate(t, s, 0) })
	if !errors.Is(err, commitlog.ErrDamaged) {
		t.Errorf("with the local state: %v", err)
	}
	if err := os.RemoveAll(r.cfg.StateDir); err != nil {
		t.Fatal(err)
	}
	err = r.try(t, func(s *Service) error { return upToDate(t, s, 0) })
	if !errors.Is(err, commitlog.ErrDamaged) || !strings.Contains(err.Error(), lost) {
		t.Errorf("without the local state: %v, want one that names %s", err, lost)
	}
}

// lastManifest returns the object of a shard's newest manifest.
func lastManifest(t *testing.T, store sink.Store, shard int) string {
	t.Helper()
	head, err := commitlog.Head(t.Context(), store, shard)
	if err != nil {
		t.Fatal(err)
	}
	return commitlog.ManifestKey(shard, head.Seq)
}

// With any single bit of the store flipped, a run has the same graph in the end, or ends with an error.
func TestRunOnAFlippedBitIsRightOrFails(t *testing.T) {
	race.SkipComputing(t)
	r := twoGenerations(t)
	whole := graphHash(t, r)
	var keys []string
	for info, err := range r.store.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	rng := rand.New(rand.NewPCG(3, 3))
	failed := 0
	for range 8 {
		key := keys[rng.IntN(len(keys))]
		good, err := sink.ReadAll(t.Context(), r.store, key)
		if errors.Is(err, sink.ErrNotFound) || len(good) == 0 {
			continue // an earlier run has removed it
		}
		if err != nil {
			t.Fatal(err)
		}
		bad := bytes.Clone(good)
		bit := rng.IntN(8 * len(bad))
		bad[bit/8] ^= 1 << (bit % 8)
		if err := sink.PutBytes(t.Context(), r.store, key, bad); err != nil {
			t.Fatal(err)
		}
		err = r.try(t, func(s *Service) error {
			return upToDate(t, s, 0)
		})
		if err != nil {
			failed++
			t.Logf("%s: %v", key, err)
		}
		now, err := sink.ReadAll(t.Context(), r.store, key)
		if err == nil && bytes.Equal(now, bad) {
			if err := sink.PutBytes(t.Context(), r.store, key, good); err != nil {
				t.Fatal(err)
			}
		}
		if got := graphHash(t, r); got != whole {
			t.Errorf("bit %d of byte %d of %s: the graph is %s, was %s", bit%8, bit/8, key, got, whole)
		}
	}
	t.Logf("%d runs failed", failed)
}

// graphHash computes the graph at the newest manifests.
func graphHash(t *testing.T, r *restartable) string {
	t.Helper()
	source, err := logview.OpenCut(t.Context(), r.store, r.cfg.Shards, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range source.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return source.Hash()
}
