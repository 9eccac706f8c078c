package reshard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"giantstream/cmd/internal/buildinfo"
	"giantstream/cmd/internal/wiring"
	"giantstream/ingest/feed"
	"giantstream/ingest/mirror"
	"giantstream/sink/rows"
	"giantstream/stream/mutation"
	"giantstream/stream/shard"
	"giantstream/train/generation"
)

// settleRecords is how many offsets are read at once.
const settleRecords = 4096

// settle brings each old shard to where nothing of it is open, and returns the directories of their states: nodes
// and edges are read up to the shard's head, the mirror to its end. If mirrored edges were not committed yet, they
// are committed to the old log.
func (r *run) settle(ctx context.Context, cache *shard.Cache) (dirs []string, err error) {
	_, translators, err := wiring.OpenSchemas(r.Config)
	if err != nil {
		return nil, err
	}
	mapping, limits := wiring.MappingOf(r.Config)
	pipeline, err := mirror.ParsePipeline(r.before.ID)
	if err != nil {
		return nil, err
	}
	in := feed.Config{Client: r.Client, Pipeline: pipeline, Topics: r.old, Mapping: mapping, Limits: limits,
		Translators: translators, Shards: r.before.Shards, MaxFuture: r.Config.Ingest.MaxFuture, Clock: time.Now,
		Log: r.Log}
	r.Progress.Stage("settle the shards of before", int64(r.before.Shards))
	for p := range r.before.Shards {
		if err := r.settleShard(ctx, p, in, cache); err != nil {
			return nil, fmt.Errorf("settle shard %d: %w", p, err)
		}
		r.Progress.Add(1)
		dirs = append(dirs, r.stateDir(p))
	}
	return dirs, nil
}

func (r *run) settleShard(ctx context.Context, p int, in feed.Config, cache *shard.Cache) (err error) {
	o := shard.Options{
		Pipeline: r.before.Name, Shard: p, Shards: r.before.Shards, Dir: r.stateDir(p), Store: r.From, Cache: cache,
		Topics: shard.Topics{Nodes: r.old.Nodes, Edges: r.old.Edges, Mirror: r.old.Mirror},
		// Mirrored edges that were not committed become one window.
		Window:      shard.Window{Changes: 1 << 40, Bytes: 1 << 60, Time: 365 * 24 * time.Hour},
		Compression: r.compression(), Featurizer: &featurizer{ctx: ctx, run: r},
		Writer: "reshard-" + strings.ReplaceAll(buildinfo.Read().String(), " ", "-"), Log: r.Log,
	}
	if r.old.Mirror != "" {
		o.Mirror = silentMirror{}
	}
	sh, err := shard.Open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sh.Close()) }()
	for _, topic := range r.old.Inputs() {
		if err := r.catchUp(ctx, sh, p, topic, in); err != nil {
			return err
		}
	}
	m, err := sh.Commit(ctx)
	if m != nil {
		r.heads[p] = m
	}
	return err
}

// catchUp lets a shard consume a topic up to its head, or the mirror to its end.
func (r *run) catchUp(ctx context.Context, sh *shard.Shard, p int, topic string, in feed.Config) error {
	next, input := r.head(p, topic)
	in.Bases = map[string]int64{topic: input.Base}
	from, begun := sh.Next()[topic]
	if !begun {
		from = input.First
	}
	to := next
	if topic == r.old.Mirror {
		to = max(to, r.ends[topic][p]+input.Base)
	}
	if from >= to {
		return nil
	}
	first, err := in.Client.FirstOffsets(ctx, topic)
	if err != nil {
		return err
	}
	if p >= len(first[topic]) || first[topic][p]+input.Base > from {
		return fmt.Errorf("the newest checkpoint of its state stands before offset %d of kafka topic %s, which has "+
			"deleted records from there on: start the pipeline of before once more, and stop it when it is idle",
			from, topic)
	}
	for from < to {
		until := min(from+settleRecords, to)
		batch := mutation.Batch{Next: map[string]int64{topic: until}}
		_, _, err := in.Range(ctx, topic, p, from-input.Base, until-input.Base, func(m mutation.Mutation) {
			batch.Mutations = append(batch.Mutations, m)
		})
		if err == nil {
			err = sh.Apply(ctx, batch)
		}
		if err != nil {
			return err
		}
		from = until
	}
	return nil
}

// silentMirror is the mirror of a shard that applies nothing but what is committed, whose mirror is durable, and
// mirrored edges, which have none.
type silentMirror struct{}

// Publish implements shard.Mirror.
func (silentMirror) Publish(context.Context, []mutation.Mutation) error { return nil }

// Flush implements shard.Mirror.
func (silentMirror) Flush(context.Context) error { return nil }

// featurizer opens the generation that is served when the first row needs it.
type featurizer struct {
	ctx  context.Context //nolint:containedctx // Featurize has none, and lives as long as the run
	run  *run
	open *generation.Generation
}

// Featurize implements shard.Featurizer.
func (f *featurizer) Featurize(row *rows.Row) (err error) {
	if f.run.doc == nil {
		return nil
	}
	if f.open == nil {
		if f.open, err = generation.Open(f.ctx, f.run.From, f.run.doc, nil); err != nil {
			return err
		}
	}
	return f.open.Featurize(row)
}
