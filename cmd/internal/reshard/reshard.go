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

	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest"
	"giantstream/ingest/client"
	"giantstream/sink"
	"giantstream/sink/parquetio"
	"giantstream/stream/commitlog"
	"giantstream/stream/shard"
	"giantstream/train"
	"giantstream/train/generation"
)

// ErrBusy: the pipeline is not stopped, or has records that it has not read.
var ErrBusy = errors.New("the pipeline is not at rest")

// Options of Run.
type Options struct {
	// Config is that of the pipeline afterwards: its store is Into, and its topics have Shards partitions.
	Config *config.Config
	// From is the store of the pipeline before.
	From, Into sink.Store
	// Client is connected to the cluster of both.
	Client *client.Client
	// Dir holds the states of all shards twice for as long as Run takes.
	Dir string
	// AcceptLoss names topics of before that are gone or have been created again: what they may have held beyond
	// the commit log is lost.
	AcceptLoss []string
	Log        *slog.Logger
	Progress   train.Progress // nil shows nothing
}

// Result says what was written.
type Result struct {
	From   string `json:"from"`
	Into   string `json:"into"`
	Before int    `json:"shards_before"`
	Shards int    `json:"shards"`
	Nodes  int64  `json:"nodes"`
	Edges  int64  `json:"edges"`
	// Hash is that of the graph, computed from the rows of each store and found equal. It is "" if the store was
	// complete already.
	Hash string `json:"graph_hash,omitempty"`
	// Generation is the one that goes on being served, 0 for none.
	Generation int64 `json:"generation"`
	// Waiting counts the records beyond the old manifests in topics whose partitions were added while records
	// came. Those that lie in a partition of the old layout become dead letters.
	Waiting int64 `json:"waiting"`
	// Complete already, before this call.
	Already bool `json:"already_complete,omitempty"`
}

// run is one attempt.
type run struct {
	Options
	before commitlog.Identity
	// old and topics are the names of the inputs before and afterwards.
	old, topics ingest.Topics
	shards      int
	marker      commitlog.Reshard
	doc         *generation.Doc // of the generation that is served, nil for none
	heads       []*commitlog.Manifest
	ends        map[string]map[int]int64 // topic → partition → log end, of the old topics as far as they are there
	ids         map[string]client.TopicIdentity
	inputs      map[string][]start
	waiting     int64
}

// start is where a new shard begins to read a topic.
type start struct {
	next  int64
	input commitlog.Input
}

// Run writes Into from From. A run that was broken off is begun again from its start; a complete one is not
// repeated. The pipeline must be stopped.
func Run(ctx context.Context, o Options) (*Result, error) {
	o.Progress = train.OrDiscard(o.Progress)
	r := &run{Options: o, topics: wiring.TopicsOf(o.Config), shards: o.Config.Shards}
	if err := r.identify(ctx); err != nil {
		return nil, err
	}
	former, err := commitlog.FormerShards(ctx, o.From)
	if err != nil {
		return nil, err
	}
	result := &Result{From: o.From.URL(), Into: o.Into.URL(), Before: r.before.Shards, Shards: r.shards}
	r.marker = commitlog.Reshard{From: o.From.URL(), FromID: r.before.ID, Into: o.Into.URL(), Shards: r.shards,
		Former: append(former, r.before.Shards), Began: time.Now().UTC()}
	if _, filled, err := commitlog.LoadReshards(ctx, o.Into); err != nil {
		return nil, err
	} else if filled != nil && filled.Done && filled.FromID == r.before.ID && filled.Shards == r.shards {
		result.Already = true
		return result, nil
	}
	// What follows until the marker changes nothing.
	if err := r.atRest(ctx); err != nil {
		return nil, err
	}
	if err := wiring.EnsureTopics(ctx, o.Client, o.Config); err != nil {
		return nil, err
	}
	if err := r.readHeads(ctx); err != nil {
		return nil, err
	}
	if err := r.findStarts(ctx); err != nil {
		return nil, err
	}
	if complete, err := r.marker.BeginAttempt(ctx, o.Into); err != nil || complete {
		result.Already = complete
		return result, err
	}
	if err := r.marker.CloseFor(ctx, o.From); err != nil {
		return nil, err
	}
	// A worker may have started before the store was closed.
	if err := r.atRest(ctx); err != nil {
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

// identify compares the pipeline before with the configuration.
func (r *run) identify(ctx context.Context) (err error) {
	if r.before, err = commitlog.LoadIdentity(ctx, r.From); err != nil {
		return err
	}
	switch {
	case r.before.ID == "" || len(r.before.Settings) == 0:
		return fmt.Errorf("store %s was made by an older release: run the pipeline once with this one first",
			r.From.URL())
	case r.From.URL() == r.Into.URL():
		return fmt.Errorf("the configuration names the store %s, which the pipeline has now: name another folder or "+
			"prefix, which the shards are written to", r.Into.URL())
	case r.before.Undirected != r.Config.Ingest.Undirected:
		return fmt.Errorf("ingest.undirected was %t and is %t: it can never change", r.before.Undirected,
			r.Config.Ingest.Undirected)
	}
	had, have := r.before.Settings, wiring.GraphSettings(r.Config)
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if !strings.HasPrefix(name, "kafka.topics.") && had[name] != have[name] {
			return fmt.Errorf("store %s %w: %s was %q and is %q. Change the number of shards alone, and the topics",
				r.From.URL(), commitlog.ErrSettings, name, had[name], have[name])
		}
	}
	cfg := *r.Config
	cfg.Pipeline, cfg.Shards = r.before.Name, r.before.Shards
	cfg.Kafka.Topics.Nodes, cfg.Kafka.Topics.Edges = had["kafka.topics.nodes"], had["kafka.topics.edges"]
	cfg.Kafka.Topics.Mirror = had["kafka.topics.mirror"]
	r.old = wiring.TopicsOf(&cfg)
	if r.old.Mirror != "" && r.old.Mirror == r.topics.Mirror {
		return fmt.Errorf("the mirror topic %q has the edges of the shards of now: name a new one in "+
			"kafka.topics.mirror, say %q. It is created with %d partitions", r.old.Mirror,
			fmt.Sprintf("%s-%d", r.old.Mirror, r.shards), r.shards)
	}
	r.doc, err = generation.Current(ctx, r.From)
	if errors.Is(err, generation.ErrNone) {
		err = nil
	}
	return err
}

// atRest returns ErrBusy if the pipeline's consumer groups have members.
func (r *run) atRest(ctx context.Context) error {
	groups := map[string]bool{}
	for _, name := range []string{r.before.Name, r.Config.Pipeline} {
		cfg := *r.Config
		cfg.Pipeline = name
		groups[cfg.Group()], groups[cfg.Group()+"-embed"] = true, true
	}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		members, err := r.Client.Members(ctx, group)
		if err != nil {
			return err
		}
		if members > 0 {
			return fmt.Errorf("%w: kafka group %q has %d members. Stop all workers; one that was killed leaves the "+
				"group after kafka.session_timeout", ErrBusy, group, members)
		}
	}
	return nil
}

// readHeads reads the newest manifest of each old shard, nil for none.
func (r *run) readHeads(ctx context.Context) error {
	for p := range r.before.Shards {
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
	states, err := shard.Rekey(ctx, shard.RekeyOptions{Pipeline: r.Config.Pipeline, Undirected: r.before.Undirected,
		From: dirs, FromPipeline: r.before.Name, Dir: filepath.Join(r.Dir, "new"), Shards: r.shards,
		Partition: client.Partition, Cache: cache, Log: r.Log})
	if err != nil {
		return err
	}
	err = r.writeStore(ctx, states, result)
	return errors.Join(err, states.Close())
}

func (r *run) writeStore(ctx context.Context, states *shard.Rekeyed, result *Result) error {
	published, err := r.cursors(ctx)
	if err != nil {
		return err
	}
	layers := r.layers(published)
	if err := r.writeLogs(ctx, states, layers); err != nil {
		return err
	}
	for q := range r.shards {
		nodes, edges := states.Counts(q)
		result.Nodes, result.Edges = result.Nodes+nodes, result.Edges+edges
	}
	if err := r.writeCursors(ctx, published, layers); err != nil {
		return err
	}
	if r.doc != nil {
		result.Generation = r.doc.Generation
		if err := r.writeGeneration(ctx); err != nil {
			return err
		}
	}
	if err := r.copySources(ctx); err != nil {
		return err
	}
	if result.Hash, err = r.compare(ctx); err != nil {
		return err
	}
	result.Waiting = r.waiting
	return commitlog.CreateIdentity(ctx, r.Into, commitlog.Identity{Name: r.Config.Pipeline, Shards: r.shards,
		Undirected: r.before.Undirected, Settings: wiring.GraphSettings(r.Config)})
}

// copySources copies what the store remembers of topics that are repartitioned.
func (r *run) copySources(ctx context.Context) error {
	for info, err := range r.From.List(ctx, "sources/", "") {
		if err != nil {
			return err
		}
		data, err := sink.ReadAll(ctx, r.From, info.Key)
		if err == nil {
			err = sink.PutBytes(ctx, r.Into, info.Key, data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compare computes the graph from the rows of both stores.
func (r *run) compare(ctx context.Context) (hash string, err error) {
	r.Progress.Stage("compare the graphs", 0)
	var sums []string
	for _, s := range []struct {
		store  sink.Store
		shards int
	}{{r.From, r.before.Shards}, {r.Into, r.shards}} {
		cut, err := commitlog.CurrentCut(ctx, s.store, s.shards)
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
		}
		sums = append(sums, hasher.Sum())
	}
	if sums[0] != sums[1] {
		return "", fmt.Errorf("the graph of %s has the hash %s, and that of %s has %s: nothing was changed in the "+
			"former; take this back with --abort, and report it", r.From.URL(), sums[0], r.Into.URL(), sums[1])
	}
	return sums[0], nil
}

// of returns the new shard of a node.
func (r *run) of(id string) int { return client.Partition([]byte(id), r.shards) }

// compression of the rows that are written.
func (r *run) compression() parquetio.Compression {
	return parquetio.Compression(r.Config.Window.Compression)
}

func (r *run) stateDir(p int) string { return filepath.Join(r.Dir, "old", strconv.Itoa(p)) }
