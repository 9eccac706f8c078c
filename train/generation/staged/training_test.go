package staged

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"giantstream/internal/tasks"
	"giantstream/sink/memstore"
	"giantstream/train/generation"
	"giantstream/train/internal/graphtest"
)

// killing has the tasks that train killed and begun again at random, and all others done as usual.
func killing(seed uint64, kills int) engineFunc {
	return func(ctx context.Context, of []tasks.Task, work tasks.Work) error {
		if of[0].Stage != Encoder {
			return tasks.Local{Workers: 2}.Run(ctx, of, work)
		}
		var group sync.WaitGroup
		errs := make(chan error, len(of))
		for i, t := range of {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			group.Go(func() {
				for attempt := 0; ; attempt++ {
					c, cancel := context.WithCancel(ctx)
					if attempt < kills {
						stop := time.AfterFunc(time.Duration(100+r.IntN(500))*time.Millisecond, cancel)
						defer stop.Stop()
					}
					err := work.Do(c, t)
					killed := c.Err() != nil
					cancel()
					if err == nil || !killed {
						errs <- err
						return
					}
				}
			})
		}
		group.Wait()
		close(errs)
		for err := range errs {
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// However many processes train the encoder, and whichever of them are killed and begin again from a checkpoint, every
// object is the same.
func TestTrainersMakeTheSameEncoder(t *testing.T) {
	logs := logsOf(classed(graphtest.Rows(600, 8), 8), 2, 1)
	var helped atomic.Int64
	build := func(trainers int, engine tasks.Engine, every time.Duration) map[string][32]byte {
		t.Helper()
		helped.Store(0)
		store := &memstore.Store{Fail: func(op, key string) error {
			if _, rest, ok := strings.Cut(key, "/group/"); ok && op == "put" && strings.Count(rest, "/") == 2 &&
				!strings.HasSuffix(rest, leaderName) && !strings.HasSuffix(rest, "/all") {
				helped.Add(1)
			}
			return nil
		}}
		s := settings()
		s.Encoder, s.Epochs, s.LeafSize = "hybrid", 12, 0
		b := newSetup(store, logs, s)
		b.worker.CheckpointEvery, b.worker.Patience, b.worker.Now = every, 2*time.Second, time.Now
		plan, err := b.worker.Begin(t.Context(), b.builder, Options{Cut: b.cut, Shards: b.shards, Partitions: 4,
			Trainers: trainers})
		if err != nil {
			t.Fatal(err)
		}
		doc := b.run(t, plan, engine)
		if doc.Status != generation.Ready || doc.Encoder.Kind != "hybrid" {
			t.Errorf("%s, %s", doc.Status, doc.Encoder.Kind)
		}
		sums := digests(t, store)
		doc.Finished = time.Time{} // checkpoints take a clock that runs
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		sums[generation.Prefix(1)+"generation.json"] = sha256.Sum256(text)
		return sums
	}
	want := build(1, tasks.Local{Workers: 2}, 0)
	for _, trainers := range []int{2, 4} {
		same(t, fmt.Sprintf("%d trainers", trainers), want, build(trainers, tasks.Local{Workers: trainers}, 0))
		if helped.Load() == 0 {
			t.Errorf("%d trainers: only one of them did anything", trainers)
		}
	}
	same(t, "4 trainers, one at a time", want, build(4, tasks.Local{Workers: 1}, 0))
	for seed := range uint64(4) {
		same(t, fmt.Sprintf("killed, seed %d", seed), want, build(int(seed)+1, killing(seed, 4), time.Nanosecond))
	}
}

func TestTrainersAreNoMoreThanSlices(t *testing.T) {
	b := newSetup(&memstore.Store{}, logsOf(graphtest.Rows(50, 4), 1, 1), settings())
	for _, n := range []int{-1, 9} {
		if _, err := b.worker.Begin(t.Context(), b.builder, Options{Trainers: n}); err == nil {
			t.Errorf("%d trainers: no error", n)
		}
	}
}
