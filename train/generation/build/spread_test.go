package build

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"giantstream/internal/race"
	"giantstream/internal/tasks"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/internal/graphtest"
)

// ranged is a log that asks for so many ranges of labels, and for the stage spread or not.
type ranged struct {
	shardLogs
	ranges int
	spread bool
}

func (l ranged) Size(ctx context.Context) (stages.Size, error) {
	s, err := l.shardLogs.Size(ctx)
	s.Ranges = l.ranges
	if l.spread {
		s.Nodes, s.Links = 1, 1
	}
	return s, err
}

// rangedSetup is a build of a log with so many ranges.
func rangedSetup(t *testing.T, log ranged, partitions, sample int) (*memstore.Store, *setup, stages.Plan) {
	t.Helper()
	store := &memstore.Store{}
	b := newSetup(store, log.shardLogs, settings())
	b.worker.Log = func(context.Context, map[int]int64) (work.Log, error) { return log, nil }
	plan := b.begin(t, partitions, sample)
	if plan.Ranges != log.ranges || plan.Spread != log.spread {
		t.Fatalf("%d ranges, spread %t; want %d, %t", plan.Ranges, plan.Spread, log.ranges, log.spread)
	}
	return store, b, plan
}

// randomLinks are the rows of a graph whose nodes have from none to many labels, some of them twice, their own or of no
// node.
func randomLinks(n int, seed uint64) []rows.Row {
	all := classed(graphtest.Rows(n, 8), 8)
	r := rand.New(rand.NewPCG(seed, 5))
	for i := range all {
		for range r.IntN(1 + r.IntN(40)) {
			all[i].Labels = append(all[i].Labels, all[r.IntN(n)].NodeID)
		}
		slices.Sort(all[i].Labels)
	}
	return all
}

// PIFA has the same bits whether projected texts are spread or read by all ranges, for any number of workers, and so
// has all that comes after it.
func TestSpreadChangesNoByte(t *testing.T) {
	race.SkipComputing(t)
	for seed, c := range []struct{ partitions, ranges, sample int }{{8, 8, 0}, {16, 8, 0}, {16, 16, 200}, {64, 32, 0}} {
		logs := logsOf(randomLinks(400, uint64(seed)), 2, uint64(seed))
		store, b, plan := rangedSetup(t, ranged{logs, c.ranges, false}, c.partitions, c.sample)
		b.run(t, plan, tasks.Local{Workers: 2})
		want := digests(t, store)
		for name, engine := range map[string]tasks.Engine{"1 worker": tasks.Local{Workers: 1},
			"2 workers": tasks.Local{Workers: 2}, "7 workers": tasks.Local{Workers: 7},
			"shuffled": shuffled{uint64(seed)}} {
			if testing.Short() && name != "7 workers" && name != "shuffled" {
				continue
			}
			store, b, plan := rangedSetup(t, ranged{logs, c.ranges, true}, c.partitions, c.sample)
			b.run(t, plan, engine)
			same(t, fmt.Sprintf("%+v, %s", c, name), want, digests(t, store))
		}
	}
}

// What spread leaves is removed once PIFA is done, is made again if it is damaged, and is what the plan says that PIFA
// reads.
func TestSpreadIsReadAndRemoved(t *testing.T) {
	race.SkipComputing(t)
	logs := logsOf(randomLinks(300, 9), 2, 9)
	store, b, plan := rangedSetup(t, ranged{logs, 8, false}, 8, 0)
	b.run(t, plan, tasks.Local{Workers: 1})
	want := digests(t, store)
	store, b, plan = rangedSetup(t, ranged{logs, 8, true}, 8, 0)
	planReads(t, store, b, plan)
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 6))
		store, b, plan := rangedSetup(t, ranged{logs, 8, true}, 8, 0)
		spoilt, removed := false, false
		b.run(t, plan, engineFunc(func(ctx context.Context, of []tasks.Task, work tasks.Work) error {
			left := stages.TasksPrefix(1) + stages.Spread + "/"
			if of[0].Stage == stages.Deal {
				removed = true
				for info := range store.List(ctx, left, "") {
					t.Errorf("seed %d: %s is left", seed, info.Key)
				}
			}
			err := tasks.Local{Workers: 2}.Run(ctx, of, work)
			if err == nil && of[0].Stage == stages.Spread && !spoilt {
				spoilt = true
				spoil(t, store, r, left)
				b.worker.drop(1) // another process reads it
			}
			return err
		}))
		if !spoilt || !removed {
			t.Errorf("seed %d: spoilt %t, removed %t", seed, spoilt, removed)
		}
		same(t, fmt.Sprintf("seed %d", seed), want, digests(t, store))
	}
}

// Where no link leads to a node, the tree is one of the texts, spread or not.
func TestSpreadOfDanglingLinks(t *testing.T) {
	all := graphtest.Rows(200, 4)
	for i := range all {
		all[i].Labels = []string{"nobody"}
	}
	_, b, plan := rangedSetup(t, ranged{logsOf(all, 2, 1), 8, true}, 8, 0)
	doc := b.run(t, plan, tasks.Local{})
	if doc.TextOnly == "" || doc.Status != generation.Ready || doc.Tree.Labels != 200 {
		t.Errorf("%q, status %s, a tree of %d labels", doc.TextOnly, doc.Status, doc.Tree.Labels)
	}
}
