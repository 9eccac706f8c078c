package reshard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"giantstream/internal/ambient"
	"giantstream/sink"
	"giantstream/sink/parquetio"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
	"giantstream/stream/shard"
	"giantstream/stream/sources"
)

var (
	// ErrBusy: the pipeline is not stopped, or has records that it has not read.
	ErrBusy = errors.New("the pipeline is not at rest")
	// ErrNoTopic: a topic does not exist.
	ErrNoTopic = errors.New("topic does not exist")
)

// Options of Run.
type Options struct {
	// Before is the pipeline of the store From, After what it is to be in Into. After.ID is not used.
	Before, After Pipeline
	From, Into    sink.Store
	Cluster       Cluster
	// Generation is the one that is served, nil for none.
	Generation Generation
	// Partition returns the partition of a node's id.
	Partition func(id []byte, partitions int) int
	// Dir holds the states of all shards twice for as long as Run takes.
	Dir string
	// Compression of the rows that are written, and who writes them.
	Compression parquetio.Compression
	Writer      string
	// AcceptLoss names old topics that are gone or were created again. Records that they held beyond the commit log
	// are lost.
	AcceptLoss []string
	// Forget are nodes that Into knows nothing of. They and all links to them must be deleted: at the heads, where the
	// cursors of the embeddings stand, and at the cut of the generation, which was built from scratch.
	Forget map[string]bool
	// ForgetDeleted chooses Forget: the nodes of which all of that is true.
	ForgetDeleted bool
	Log           *slog.Logger
	Progress      ambient.Progress // nil shows nothing
}

// Pipeline is a pipeline with one number of shards.
type Pipeline struct {
	commitlog.Identity
	Topics shard.Topics
}

// Cluster is the brokers of both pipelines.
type Cluster interface {
	// AtRest returns ErrBusy if a consumer group of one of the pipelines has members.
	AtRest(ctx context.Context) error
	// EnsureTopics creates the missing topics of the new pipeline.
	EnsureTopics(ctx context.Context) error
	// Topic returns the present state of a topic; ErrNoTopic if there is none.
	Topic(ctx context.Context, name string) (Topic, error)
	// Range calls each with what the records of an old topic state, in the order of the records. from and to are
	// offsets of the brokers; the mutations have offsets higher by base.
	Range(ctx context.Context, topic string, partition int, base, from, to int64, each func(mutation.Mutation)) error
}

// Topic is a topic at one moment.
type Topic struct {
	ID string // "" where brokers give none
	// First is the offset of the first record of each partition, End the offset after the last one, whether it can be
	// read yet or not.
	First, End []int64
}

// Generation is a generation of the old pipeline.
type Generation interface {
	shard.Featurizer
	Number() int64
	Cut() commitlog.Cut
	// LearnedFrom returns the earliest cut whose graph has something learned from it in the generation: Cut, or that of
	// an earlier generation.
	LearnedFrom() (commitlog.Cut, error)
	// CopyTo copies it to a store with other shards, in which the first manifest of each shard has the rows of Cut.
	CopyTo(ctx context.Context, into sink.Store, shards int, shardOf func(id string) int, p ambient.Progress) error
}

// Result says what was written.
type Result struct {
	From   string `json:"from"`
	Into   string `json:"into"`
	Before int    `json:"shards_before"`
	Shards int    `json:"shards"`
	Nodes  int64  `json:"nodes"`
	Edges  int64  `json:"edges"`
	Orders int64  `json:"orders,omitempty"`
	// Hash is that of the graph, computed from the rows of each store and found equal. It is "" if the store was
	// complete already.
	Hash string `json:"graph_hash,omitempty"`
	// Generation is the one that goes on being served, 0 for none.
	Generation int64 `json:"generation"`
	// Waiting counts the records beyond the old manifests in topics whose partitions were added while records
	// came. Those that lie in a partition of the old layout become dead letters.
	Waiting int64 `json:"waiting"`
	// Forgotten counts the nodes of Options.Forget. Deleted counts those that ForgetDeleted left: they were deleted, or
	// links to them were, since the generation's cut, or that is not published.
	Forgotten int `json:"forgotten,omitempty"`
	Deleted   int `json:"deleted_since,omitempty"`
	// Complete already, before this call.
	Already bool `json:"already_complete,omitempty"`
}

// run is one attempt.
type run struct {
	Options
	shards  int
	marker  commitlog.Reshard
	heads   []*commitlog.Manifest
	left    map[string]remains // of the old topics that still exist
	inputs  map[string][]start
	waiting int64
}

// start is where a new shard begins to read a topic.
type start struct {
	next  int64
	input commitlog.Input
}

// Run writes Into from From. A run that was broken off is begun again from its start; a complete one is not
// repeated. The pipeline must be stopped.
func Run(ctx context.Context, o Options) (*Result, error) {
	o.Progress = ambient.OrDiscard(o.Progress)
	r := &run{Options: o, shards: o.After.Shards, left: map[string]remains{}}
	if err := r.check(); err != nil {
		return nil, err
	}
	former, err := commitlog.FormerShards(ctx, o.From)
	if err != nil {
		return nil, err
	}
	result := &Result{From: o.From.URL(), Into: o.Into.URL(), Before: r.Before.Shards, Shards: r.shards}
	r.marker = commitlog.Reshard{From: o.From.URL(), FromID: r.Before.ID, Into: o.Into.URL(), Shards: r.shards,
		Former: append(former, r.Before.Shards), Began: time.Now().UTC()}
	if _, filled, err := commitlog.LoadReshards(ctx, o.Into); err != nil {
		return nil, err
	} else if filled != nil && filled.Done && filled.FromID == r.Before.ID && filled.Shards == r.shards {
		result.Already = true
		return result, nil
	}
	// What follows until the marker changes nothing.
	if err := r.Cluster.AtRest(ctx); err != nil {
		return nil, err
	}
	if err := r.Cluster.EnsureTopics(ctx); err != nil {
		return nil, err
	}
	if err := r.readHeads(ctx); err != nil {
		return nil, err
	}
	if err := r.findStarts(ctx); err != nil {
		return nil, err
	}
	if result.Deleted, err = r.prepareForgetting(ctx); err != nil {
		return nil, err
	}
	result.Forgotten = len(r.Forget)
	o.Into.SetPipeline("") // an attempt that was broken off has drawn another id than this one will
	if complete, err := r.marker.BeginAttempt(ctx, o.Into); err != nil || complete {
		result.Already = complete
		return result, err
	}
	if err := r.marker.CloseFor(ctx, o.From); err != nil {
		return nil, err
	}
	// A worker may have started before the store was closed.
	if err := r.Cluster.AtRest(ctx); err != nil {
		return nil, err
	}
	if err := r.marker.Empty(ctx, o.Into); err != nil {
		return nil, err
	}
	if err := r.write(ctx, result); err != nil {
		return nil, err
	}
	return result, r.marker.Complete(ctx, o.Into)
}

// check compares the two pipelines.
func (r *run) check() error {
	switch {
	case r.Before.ID == "" || len(r.Before.Settings) == 0:
		return fmt.Errorf("store %s was made by an older release: run the pipeline once with this one first",
			r.From.URL())
	case r.From.URL() == r.Into.URL():
		return fmt.Errorf("the configuration names the store %s, which the pipeline has now: name another folder or "+
			"prefix, which the shards are written to", r.Into.URL())
	case r.Before.Undirected != r.After.Undirected:
		return fmt.Errorf("ingest.undirected was %t and is %t: it can never change", r.Before.Undirected,
			r.After.Undirected)
	}
	had, have := r.Before.Settings, r.After.Settings
	names := maps.Clone(have)
	for name, value := range had { // a setting that is not named now has its default
		if strings.HasPrefix(name, "ingest.") {
			names[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		topic := strings.HasPrefix(name, "kafka.topics.") ||
			name == "ingest.baskets.topic" && had[name] != "" && have[name] != ""
		if !topic && had[name] != have[name] {
			return fmt.Errorf("store %s %w: %s was %q and is %q. Change the number of shards alone, and the topics",
				r.From.URL(), commitlog.ErrSettings, name, had[name], have[name])
		}
	}
	if mirror := r.Before.Topics.Mirror; mirror != "" && mirror == r.After.Topics.Mirror {
		return fmt.Errorf("the mirror topic %q has the edges of the shards of now: name a new one in "+
			"kafka.topics.mirror, say %q. It is created with %d partitions", mirror,
			fmt.Sprintf("%s-%d", mirror, r.shards), r.shards)
	}
	return nil
}

// readHeads reads the newest manifest of each old shard, nil for none.
func (r *run) readHeads(ctx context.Context) error {
	for p := range r.Before.Shards {
		head, err := commitlog.Head(ctx, r.From, p)
		if err != nil {
			return err
		}
		r.heads = append(r.heads, head)
	}
	return nil
}

// head returns what an old shard has committed of a topic, and which topic that is.
func (r *run) head(p int, topic string) (next int64, in commitlog.Input) {
	if p < len(r.heads) && r.heads[p] != nil {
		next, in = r.heads[p].Next[topic], r.heads[p].Inputs[topic]
	}
	return next, in
}

// write writes everything but what says that it is complete.
func (r *run) write(ctx context.Context, result *Result) error {
	// States from before a crash are of no use: a checkpoint makes them anew.
	if err := os.RemoveAll(r.Dir); err != nil {
		return fmt.Errorf("remove the states of an earlier attempt: %w", err)
	}
	defer os.RemoveAll(r.Dir) //nolint:errcheck // the next attempt removes it
	cache := shard.NewCache()
	defer cache.Release()
	dirs, err := r.settle(ctx, cache)
	if err != nil {
		return err
	}
	r.Progress.Stage("move the states", 0)
	states, err := shard.Rekey(ctx, shard.RekeyOptions{Pipeline: r.After.Name, Undirected: r.Before.Undirected,
		From: dirs, FromPipeline: r.Before.Name, Dir: filepath.Join(r.Dir, "new"), Shards: r.shards,
		Partition: r.Partition, Forget: r.Forget, Cache: cache, Log: r.Log})
	if err != nil {
		return err
	}
	err = r.writeStore(ctx, states, result)
	return errors.Join(err, states.Close())
}

func (r *run) writeStore(ctx context.Context, states *shard.Rekeyed, result *Result) error {
	commitlog.DrawID(r.Into) // what is written from here on names the new pipeline
	published, err := r.cursors(ctx)
	if err != nil {
		return err
	}
	layers := r.layers(published)
	for _, cut := range layers.cuts {
		h, err := cut.OrderHorizon(ctx, r.From)
		if err != nil {
			return err
		}
		layers.horizons = append(layers.horizons, h)
	}
	if err := r.writeLogs(ctx, states, layers); err != nil {
		return err
	}
	for q := range r.shards {
		m := &commitlog.Manifest{Shard: q}
		states.Count(m)
		result.Nodes, result.Edges, result.Orders = result.Nodes+m.Nodes, result.Edges+m.Edges, result.Orders+m.Orders
	}
	if err := r.writeCursors(ctx, published, layers); err != nil {
		return err
	}
	if g := r.Generation; g != nil {
		r.Progress.Stage("copy the generation", 0)
		result.Generation = g.Number()
		if err := g.CopyTo(ctx, r.Into, r.shards, r.shardOf, r.Progress); err != nil {
			return err
		}
	}
	if err := sources.Copy(ctx, r.From, r.Into); err != nil {
		return err
	}
	if result.Hash, err = r.compare(ctx); err != nil {
		return err
	}
	result.Waiting = r.waiting
	return commitlog.CreateIdentity(ctx, r.Into, r.After.Identity)
}

// compare computes the graph from the rows of both stores.
func (r *run) compare(ctx context.Context) (hash string, err error) {
	r.Progress.Stage("compare the graphs", 0)
	var sums []string
	for _, s := range []struct {
		store  sink.Store
		shards int
	}{{r.From, r.Before.Shards}, {r.Into, r.shards}} {
		cut, err := commitlog.CurrentCut(ctx, s.store, s.shards)
		if err != nil {
			return "", err
		}
		horizon, err := cut.OrderHorizon(ctx, s.store)
		if err != nil {
			return "", err
		}
		hasher := commitlog.NewGraphHasher()
		for p := range s.shards {
			for row, err := range cut.Facts(ctx, s.store, p) {
				if err != nil {
					return "", err
				}
				hasher.Add(&row.Row)
				r.Progress.Add(1)
			}
			for row, err := range cut.Orders(ctx, s.store, p, horizon) {
				if err != nil {
					return "", err
				}
				r.forgetItems(&row)
				hasher.AddOrder(&row)
			}
			for row, err := range cut.Vectors(ctx, s.store, p) {
				if err != nil {
					return "", err
				}
				if !r.Forget[row.NodeID] {
					hasher.AddVectors(&row.Vectors)
				}
			}
		}
		sums = append(sums, hasher.Sum())
	}
	if sums[0] != sums[1] {
		return "", fmt.Errorf("the graph of %s has the hash %s, and that of %s has %s: nothing was changed in the "+
			"former; take this back with --abort, and report it", r.From.URL(), sums[0], r.Into.URL(), sums[1])
	}
	return sums[0], nil
}

// shardOf returns the new shard of a node.
func (r *run) shardOf(id string) int { return r.Partition([]byte(id), r.shards) }

func (r *run) stateDir(p int) string { return filepath.Join(r.Dir, "old", strconv.Itoa(p)) }
