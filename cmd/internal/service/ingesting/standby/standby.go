// Package standby is the part of ingesting that keeps shards of other workers warm: the files of their newest
// checkpoints are on this machine's disk, so that this process has them soon if it gets the shards.
package standby

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/cmd/internal/service/heads"
	"giantstream/cmd/internal/service/process"
	"giantstream/sink"
	"giantstream/stream/commitlog/checkpoint"
	"giantstream/stream/shard"
)

const (
	// Every is how often a worker looks for newer checkpoints of the shards that it keeps warm, writes that it
	// does, and takes on at most one more.
	Every = 10 * time.Second
	// stale is how many looks a worker waits before it takes on a shard whose standby has not written since.
	stale = 3
)

// Standbys are the shards that this process keeps warm. Which worker keeps which is agreed on by claims in the store.
// That two keep the same does no harm. The exported fields are inputs.
type Standbys struct {
	Store  sink.Store
	Shards int
	// Dir has a folder for each shard that is kept warm.
	Dir   string
	Every time.Duration
	Heads *heads.Heads
	// Streamed returns the shards that this process streams, and whether they have what is committed.
	Streamed func() map[int]bool
	Log      *slog.Logger

	fetched   prometheus.Counter
	worker    string
	unchanged map[int]observation

	mu   sync.Mutex
	kept map[int]*standby
}

// Open registers the metrics.
func (k *Standbys) Open(r prometheus.Registerer) {
	k.fetched = prometheus.NewCounter(prometheus.CounterOpts{Name: "giantstream_standby_bytes_total",
		Help: "Bytes of checkpoints that were fetched to keep shards of other processes warm."})
	r.MustRegister(k.fetched, k)
	k.worker, k.unchanged = process.Name()+"-"+rand.Text()[:8], map[int]observation{}
}

type standby struct {
	owner string // of the shard, when it was taken on
	seen  int64  // number of the newest checkpoint that is whole here, 0 for none
	made  time.Time
}

// observation is for how many looks a claim has not changed.
type observation struct {
	worker string
	moves  int64
	looks  int
}

// Warm returns the shards that a checkpoint is here of, ascending.
func (k *Standbys) Warm() (shards []int) {
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

var descAge = prometheus.NewDesc("giantstream_standby_age_seconds",
	"How old the checkpoint is that this process keeps of a shard of another one.", []string{"shard"}, nil)

// Describe implements prometheus.Collector.
func (k *Standbys) Describe(out chan<- *prometheus.Desc) { out <- descAge }

// Collect implements prometheus.Collector.
func (k *Standbys) Collect(out chan<- prometheus.Metric) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for p, one := range k.kept {
		if one.seen > 0 {
			out <- prometheus.MustNewConstMetric(descAge, prometheus.GaugeValue, time.Since(one.made).Seconds(),
				strconv.Itoa(p))
		}
	}
}

// DirOf is where the files of a shard that is kept warm lie.
func (k *Standbys) DirOf(shard int) string { return filepath.Join(k.Dir, strconv.Itoa(shard)) }

// Run keeps shards of other workers warm until ctx ends. No failure of it stops anything.
func (k *Standbys) Run(ctx context.Context) error {
	tick := time.NewTicker(k.Every)
	defer tick.Stop()
	for {
		if err := k.chooseShards(ctx); err != nil && ctx.Err() == nil {
			k.Log.Warn("shards of other workers cannot be kept warm, trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (k *Standbys) chooseShards(ctx context.Context) error {
	mine := k.Streamed()
	var free []checkpoint.StandbyClaim
	for p := range k.Shards {
		ready, streams := mine[p]
		claim, err := checkpoint.ReadStandby(ctx, k.Store, p)
		if err != nil {
			return err
		}
		switch {
		case streams:
			k.give(p)
			if ready { // and the restore needs the files no more
				err = os.RemoveAll(k.DirOf(p))
			}
		case claim.Worker == k.worker:
			err = k.refresh(ctx, p, claim)
		case k.stale(p, claim):
			free = append(free, claim)
		default: // another worker keeps it
			k.give(p)
			err = os.RemoveAll(k.DirOf(p))
		}
		if err != nil {
			return err
		}
	}
	return k.take(ctx, free, len(mine)+1)
}

// stale reports whether nobody keeps a shard warm, as far as its claim shows.
func (k *Standbys) stale(p int, claim checkpoint.StandbyClaim) bool {
	if claim.Worker == "" {
		return true
	}
	o := k.unchanged[p]
	if o.worker != claim.Worker || o.moves != claim.Moves {
		o = observation{worker: claim.Worker, moves: claim.Moves}
	}
	o.looks++
	k.unchanged[p] = o
	return o.looks > stale
}

// take takes on one of the free shards, unless this process keeps as many as it should. It takes one of the worker
// of which it keeps fewest, so that the shards of a worker that dies go to several.
func (k *Standbys) take(ctx context.Context, free []checkpoint.StandbyClaim, most int) error {
	owners := map[string]int{}
	k.mu.Lock()
	kept := len(k.kept)
	for _, one := range k.kept {
		owners[one.owner]++
	}
	k.mu.Unlock()
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
func (k *Standbys) refresh(ctx context.Context, p int, claim checkpoint.StandbyClaim) error {
	doc, fetched, err := shard.FetchStandby(ctx, k.Store, p, k.DirOf(p), k.Log)
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
		k.fetched.Add(float64(fetched))
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
func (k *Standbys) note(p int, change func(*standby)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil {
		k.kept = map[int]*standby{}
	}
	if k.kept[p] == nil {
		k.kept[p] = &standby{}
	}
	change(k.kept[p])
}

// give gives a shard up. Its claim becomes stale.
func (k *Standbys) give(p int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.kept, p)
}
