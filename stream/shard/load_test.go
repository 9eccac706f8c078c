package shard

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"giantstream/internal/race"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
)

// A first load is committed at its end, and has the rows that windows would have left, also if it
// does not fit into memory and the processes die on the way.
func TestALoadHasTheRowsOfWindows(t *testing.T) {
	race.SkipComputing(t)
	for seed := range uint64(6) {
		b := newBroker(2)
		fill(b, rand.New(rand.NewPCG(seed, 2)), 300, 30)
		p := newPipeline(t, b, seed)
		loaded := p.load(10)
		sameRows(t, p.newest(), model(b.everything(), true))
		p.checkLog()
		for shard, manifests := range loaded {
			if manifests == 0 {
				t.Errorf("seed %d: shard %d has no manifest", seed, shard)
			}
		}
	}
}

// load runs the shards in turn as a first load, drops shards as often as crashes says, and then
// drains. It returns how many manifests each shard has. No shard may have one before that.
func (p *pipeline) load(crashes int) (manifests []int64) {
	p.t.Helper()
	ctx := context.Background()
	draining := false
	shards, feeds := make([]*Shard, p.b.shards), make([]*logFeed, p.b.shards)
	for turn := 0; ; turn++ {
		if turn > 100_000 {
			p.t.Fatal("the load does not come to an end")
		}
		i := p.rng.IntN(len(shards))
		if shards[i] == nil {
			opts := p.options(i)
			opts.Load, opts.Drain = true, func() bool { return draining }
			s, err := Open(ctx, opts)
			if err != nil {
				p.t.Fatal(err)
			}
			shards[i], feeds[i] = s, p.feed(s)
		}
		// One batch for each call of Run, which ends with it.
		if err := shards[i].Run(ctx, &oneBatch{feed: feeds[i]}); !errors.Is(err, errScriptOver) {
			p.t.Fatal(err)
		}
		if crashes > 0 && p.rng.IntN(6) == 0 {
			crashes--
			p.crash(shards[i], i)
			shards[i] = nil
			continue
		}
		caughtUp := crashes == 0
		for i, s := range shards {
			caughtUp = caughtUp && s != nil && feeds[i].caughtUp()
		}
		if !draining && caughtUp {
			for i := range shards {
				if head, err := commitlog.Head(ctx, p.store, i); err != nil || head != nil {
					p.t.Fatalf("shard %d has manifest %v before the end of the load (%v)", i, head, err)
				}
			}
			draining = true
		}
		if draining && p.idle(shards, feeds) {
			break
		}
	}
	for i, s := range shards {
		manifests = append(manifests, s.headSeq())
		if err := s.Close(); err != nil {
			p.t.Fatalf("shard %d: %v", i, err)
		}
	}
	return manifests
}

// oneBatch is a feed of the next batch of another.
type oneBatch struct {
	feed  *logFeed
	asked bool
}

func (f *oneBatch) Next(ctx context.Context, wait time.Duration) (mutation.Batch, error) {
	if f.asked {
		return mutation.Batch{}, errScriptOver
	}
	f.asked = true
	return f.feed.Next(ctx, wait)
}
