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
						stop := time.AfterFunc(time.Duration(50+r.IntN(250))*time.Millisecond, cancel)
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
	logs := logsOf(classed(graphtest.Rows(150, 8), 8), 2, 1)
	for name, set := range map[string]func(*fit.Settings){
		"hybrid": func(s *fit.Settings) { s.Encoder, s.Epochs = hybrid.Kind, 6 },
		"bag":    func(s *fit.Settings) { s.Encoder, s.Epochs = bag.Kind, 6 },
		"bert with n-grams": func(s *fit.Settings) {
			s.Encoder, s.Epochs = bert.Kind, 2
			s.BERT = &fit.BERT{Model: "../../encoders/bert/testdata/tiny", Pooling: "mean", MaxTokens: 16, Dropout: 0.1,
				NGrams: 300}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // who takes over from a killed process waits
			c := crew{logs: logs, set: set}
			want := c.build(t, 1, tasks.Local{Workers: 2}, 0)
			for _, trainers := range []int{2, 4} {
				same(t, fmt.Sprintf("%d trainers", trainers), want, c.build(t, trainers, tasks.Local{Workers: trainers}, 0))
				if c.helped.Load() == 0 {
					t.Errorf("%d trainers: only one of them did anything", trainers)
				}
			}
			seeds := uint64(4)
			if testing.Short() {
				seeds = 2
			}
			for seed := range seeds {
				same(t, fmt.Sprintf("killed, seed %d", seed), want,
					c.build(t, 4-int(seed), killing(seed, 4), time.Nanosecond))
			}
			if name == "bag" {
				same(t, "4 trainers, one at a time", want, c.build(t, 4, tasks.Local{Workers: 1}, 0))
			}
		})
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
