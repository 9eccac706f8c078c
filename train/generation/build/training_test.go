package build

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

	"giantstream/internal/race"
	"giantstream/internal/tasks"
	"giantstream/sink/memstore"
	"giantstream/train/encoders/bag"
	"giantstream/train/encoders/bert"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/fit"
	"giantstream/train/internal/graphtest"
)

// killing has the tasks that train killed and begun again at random, and all others done as usual.
func killing(seed uint64, kills int) engineFunc {
	return func(ctx context.Context, of []tasks.Task, work tasks.Work) error {
		if of[0].Stage != stages.Encoder {
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
	nodes := 600
	if race.Enabled {
		nodes = 150 // the goroutines are the same, and each node costs ten times as much
	}
	logs := logsOf(classed(graphtest.Rows(nodes, 8), 8), 2, 1)
	for name, set := range map[string]func(*fit.Settings){
		"hybrid": func(s *fit.Settings) { s.Encoder, s.Epochs = hybrid.Kind, 12 },
		"bag":    func(s *fit.Settings) { s.Encoder, s.Epochs = bag.Kind, 12 },
		"bert with n-grams": func(s *fit.Settings) {
			s.Encoder, s.Epochs = bert.Kind, 2
			s.BERT = &fit.BERT{Model: "../../encoders/bert/testdata/tiny", Pooling: "mean", MaxTokens: 16, Dropout: 0.1,
				NGrams: 300}
		},
	} {
		c := crew{logs: logs, set: set}
		want := c.build(t, 1, tasks.Local{Workers: 2}, 0)
		for _, trainers := range []int{2, 4} {
			same(t, fmt.Sprintf("%s, %d trainers", name, trainers), want,
				c.build(t, trainers, tasks.Local{Workers: trainers}, 0))
			if c.helped.Load() == 0 {
				t.Errorf("%s, %d trainers: only one of them did anything", name, trainers)
			}
		}
		seeds := uint64(4)
		if testing.Short() {
			seeds = 2
		}
		for seed := range seeds {
			same(t, fmt.Sprintf("%s, killed, seed %d", name, seed), want,
				c.build(t, 4-int(seed), killing(seed, 4), time.Nanosecond))
		}
		if name == "bag" {
			same(t, "4 trainers, one at a time", want, c.build(t, 4, tasks.Local{Workers: 1}, 0))
		}
	}
}

// crew builds with processes that train together.
type crew struct {
	logs   shardLogs
	set    func(*fit.Settings)
	helped atomic.Int64 // parts that others than the leader have done in the last build
}

func (c *crew) build(t *testing.T, trainers int, engine tasks.Engine, every time.Duration) map[string][32]byte {
	t.Helper()
	c.helped.Store(0)
	store := &memstore.Store{Fail: func(op, key string) error {
		if _, rest, ok := strings.Cut(key, "/group/"); ok && op == "put" && strings.Count(rest, "/") == 2 &&
			!strings.HasSuffix(rest, "-leader") && !strings.HasSuffix(rest, "/all") {
			c.helped.Add(1)
		}
		return nil
	}}
	s := settings()
	s.LeafSize = 0
	c.set(&s)
	b := newSetup(store, c.logs, s)
	b.worker.CheckpointEvery, b.worker.Patience, b.worker.Now = every, 2*time.Second, time.Now
	b.request.Partitions, b.request.Trainers = 4, trainers
	plan, err := b.worker.Begin(t.Context(), b.request)
	if err != nil {
		t.Fatal(err)
	}
	doc := b.run(t, plan, engine)
	if doc.Status != generation.Ready || doc.TextOnly != "" {
		t.Errorf("%s, %s", doc.Status, doc.TextOnly)
	}
	sums := digests(t, store)
	doc.Created, doc.Finished, doc.Stages = time.Time{}, time.Time{}, nil // checkpoints take a clock that runs
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	sums[generation.Prefix(1)+"generation.json"] = sha256.Sum256(text)
	return sums
}

func TestTrainersAreNoMoreThanSlices(t *testing.T) {
	b := newSetup(&memstore.Store{}, logsOf(graphtest.Rows(50, 4), 1, 1), settings())
	for _, n := range []int{-1, 9} {
		b.request.Trainers = n
		if _, err := b.worker.Begin(t.Context(), b.request); err == nil {
			t.Errorf("%d trainers: no error", n)
		}
	}
}
