package ingesting

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"giantstream/cmd/internal/service/process"
	"giantstream/sink"
	"giantstream/stream/commitlog/checkpoint"
	"giantstream/stream/shard"
)

const (
	// StandbyEvery is how often a worker looks for newer checkpoints of the shards that it keeps warm, writes that it
	// does, and takes on at most one more.
	StandbyEvery = 10 * time.Second
	// standbyStale is how many looks a worker waits before it takes on a shard whose standby has not written since.
	standbyStale = 3
)

// standbys are the shards that this process keeps warm: for each, the files of its newest checkpoint are on the disk.
// Which worker keeps which is agreed on by claims in the store. That two keep the same does no harm.
type standbys struct {
	mu   sync.Mutex
	kept map[int]*standby
}

type standby struct {
	owner string // of the shard, when it was taken on
	seen  int64  // number of the newest checkpoint that is whole here, 0 for none
	made  time.Time
}

// warm returns the shards that a checkpoint is here of, ascending.
func (k *standbys) warm() (shards []int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for p, one := range k.kept {
		if one.seen > 0 {
			shards = append(shards, p)
		}
	}
	slices.Sort(shards)
	return shards
}

// Warm returns the shards that this process keeps warm, ascending.
func (in *Ingest) Warm() []int { return in.standbys.warm() }

// ages returns how old the checkpoints are that are kept, by shard.
func (k *standbys) ages(now time.Time) map[int]time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	ages := map[int]time.Duration{}
	for p, one := range k.kept {
		if one.seen > 0 {
			ages[p] = now.Sub(one.made)
		}
	}
	return ages
}

// standbyDir is where the files of a shard that is kept warm lie.
func (in *Ingest) standbyDir(shard int) string {
	return filepath.Join(in.Config.StateDir, "standby", strconv.Itoa(shard))
}

// keepStandbys keeps shards of other workers warm until ctx ends. No failure of it stops anything.
func (in *Ingest) keepStandbys(ctx context.Context) error {
	k := &keeper{Ingest: in, worker: process.Name() + "-" + rand.Text()[:8], unchanged: map[int]observation{}}
	tick := time.NewTicker(in.StandbyEvery)
	defer tick.Stop()
	for {
		if err := k.look(ctx); err != nil && ctx.Err() == nil {
			in.Log.Warn("shards of other workers cannot be kept warm, trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// keeper takes on shards and fetches their checkpoints.
type keeper struct {
	*Ingest
	worker    string
	unchanged map[int]observation
}

// observation is for how many looks a claim has not changed.
type observation struct {
	worker string
	moves  int64
	looks  int
}

func (k *keeper) look(ctx context.Context) error {
	mine := map[int]bool{} // shards that this process streams, and whether they have what is committed
	for _, w := range k.Watches.All() {
		mine[w.Shard] = w.Ready
	}
	var free []checkpoint.StandbyClaim
	for p := range k.Config.Shards {
		ready, streams := mine[p]
		claim, err := checkpoint.ReadStandby(ctx, k.Store, p)
		if err != nil {
			return err
		}
		switch {
		case streams:
			k.give(p)
			if ready { // and the restore needs the files no more
				err = os.RemoveAll(k.standbyDir(p))
			}
		case claim.Worker == k.worker:
			err = k.refresh(ctx, p, claim)
		case k.stale(p, claim):
			free = append(free, claim)
		default: // another worker keeps it
			k.give(p)
			err = os.RemoveAll(k.standbyDir(p))
		}
		if err != nil {
			return err
		}
	}
	return k.take(ctx, free, len(mine)+1)
}

// stale reports whether nobody keeps a shard warm, as far as its claim shows.
func (k *keeper) stale(p int, claim checkpoint.StandbyClaim) bool {
	if claim.Worker == "" {
		return true
	}
	o := k.unchanged[p]
	if o.worker != claim.Worker || o.moves != claim.Moves {
		o = observation{worker: claim.Worker, moves: claim.Moves}
	}
	o.looks++
	k.unchanged[p] = o
	return o.looks > standbyStale
}

// take takes on one of the free shards, unless this process keeps as many as it should. It takes one of the worker
// of which it keeps fewest, so that the shards of a worker that dies go to several.
func (k *keeper) take(ctx context.Context, free []checkpoint.StandbyClaim, most int) error {
	owners := map[string]int{}
	k.standbys.mu.Lock()
	kept := len(k.standbys.kept)
	for _, one := range k.standbys.kept {
		owners[one.owner]++
	}
	k.standbys.mu.Unlock()
	if len(free) == 0 || kept >= most {
		return nil
	}
	best, owner := -1, ""
	for i, claim := range free {
		head, err := k.Heads.Newest(ctx, claim.Shard)
		if err != nil {
			return err
		}
		if head == nil {
			continue // there is nothing to keep
		}
		by := head.Writer[:max(0, strings.LastIndexByte(head.Writer, '-'))]
		if best < 0 || owners[by] < owners[owner] {
			best, owner = i, by
		}
	}
	if best < 0 {
		return nil
	}
	claim := free[best]
	err := claim.Write(ctx, checkpoint.Standby{Worker: k.worker})
	if errors.Is(err, sink.ErrChanged) {
		return nil // another worker was faster
	}
	if err != nil {
		return err
	}
	k.note(claim.Shard, func(one *standby) { one.owner = owner })
	return k.refresh(ctx, claim.Shard, claim)
}

// refresh fetches the newest checkpoint of a shard that this process keeps warm, and writes that it does.
func (k *keeper) refresh(ctx context.Context, p int, claim checkpoint.StandbyClaim) error {
	doc, fetched, err := shard.FetchStandby(ctx, k.Store, p, k.standbyDir(p), k.Log)
	if errors.Is(err, checkpoint.ErrBad) { // it was collected meanwhile, say: there is a newer one
		k.Log.Warn("the newest checkpoint of a shard that is kept warm cannot be fetched", "shard", p, "error", err)
		doc, err = nil, nil
	}
	if err != nil {
		return err
	}
	to := checkpoint.Standby{Worker: k.worker}
	if doc != nil {
		to.Number, to.Seq, to.Created = doc.Number, doc.Seq, doc.Created
		k.metrics.standbyBytes.Add(float64(fetched))
	}
	if err := claim.Write(ctx, to); err != nil && !errors.Is(err, sink.ErrChanged) {
		return err
	}
	k.note(p, func(one *standby) {
		if doc != nil {
			one.seen, one.made = doc.Number, doc.Created
		}
	})
	return nil
}

// note changes what is known of a shard that this process keeps warm.
func (k *keeper) note(p int, change func(*standby)) {
	k.standbys.mu.Lock()
	defer k.standbys.mu.Unlock()
	if k.standbys.kept == nil {
		k.standbys.kept = map[int]*standby{}
	}
	if k.standbys.kept[p] == nil {
		k.standbys.kept[p] = &standby{}
	}
	change(k.standbys.kept[p])
}

// give gives a shard up. Its claim becomes stale.
func (k *keeper) give(p int) {
	k.standbys.mu.Lock()
	defer k.standbys.mu.Unlock()
	delete(k.standbys.kept, p)
}
