package reshard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"giantstream/sink/rows"
	"giantstream/stream/mutation"
	"giantstream/stream/shard"
)

// settleRecords is how many offsets are read at once.
const settleRecords = 4096

// settle leaves nothing of the old shards open, and returns the directories of their states. Each shard reads nodes and
// edges up to its head, and all of the mirror. Mirrored edges that were not committed yet are committed to the old log.
func (r *run) settle(ctx context.Context, cache *shard.Cache) (dirs []string, err error) {
	r.Progress.Stage("settle the shards of before", int64(r.Before.Shards))
	for p := range r.Before.Shards {
		if err := r.settleShard(ctx, p, cache); err != nil {
			return nil, fmt.Errorf("settle shard %d: %w", p, err)
		}
		r.Progress.Add(1)
		dirs = append(dirs, r.stateDir(p))
	}
	return dirs, nil
}

func (r *run) settleShard(ctx context.Context, p int, cache *shard.Cache) (err error) {
	o := shard.Options{
		Pipeline: r.Before.Name, Shard: p, Shards: r.Before.Shards, Dir: r.stateDir(p), Store: r.From, Cache: cache,
		Topics: r.Before.Topics,
		// Mirrored edges that were not committed become one window.
		Window:      shard.Window{Changes: 1 << 40, Bytes: 1 << 60, Time: 365 * 24 * time.Hour},
		Compression: r.Compression, Featurizer: r.featurizer(), Writer: r.Writer, Log: r.Log,
	}
	if r.Before.Topics.Mirror != "" {
		o.Mirror = silentMirror{}
	}
	sh, err := shard.Open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sh.Close()) }()
	for _, topic := range r.Before.Topics.Names() {
		if err := r.catchUp(ctx, sh, p, topic); err != nil {
			return err
		}
	}
	m, err := sh.Commit(ctx)
	if m != nil {
		r.heads[p] = m
	}
	return err
}

// catchUp lets a shard consume a topic up to the shard's head, or all of the mirror.
func (r *run) catchUp(ctx context.Context, sh *shard.Shard, p int, topic string) error {
	next, input := r.head(p, topic)
	from, begun := sh.Next()[topic]
	if !begun {
		from = input.First
	}
	to := next
	if topic == r.Before.Topics.Mirror {
		to = max(to, r.left[topic].ends[p]+input.Base)
	}
	if from >= to {
		return nil
	}
	now, err := r.Cluster.Topic(ctx, topic)
	if err != nil {
		return err
	}
	if p >= len(now.First) || now.First[p]+input.Base > from {
		return fmt.Errorf("the newest checkpoint of its state stands before offset %d of kafka topic %s, which has "+
			"deleted records from there on: start the pipeline of before once more, and stop it when it is idle",
			from, topic)
	}
	for from < to {
		until := min(from+settleRecords, to)
		if from < next { // a batch has records of one side of the head alone
			until = min(until, next)
		}
		batch := mutation.Batch{Next: map[string]int64{topic: until}}
		err := r.Cluster.Range(ctx, topic, p, input.Base, from-input.Base, until-input.Base,
			func(m mutation.Mutation) { batch.State(inputOf(&m), until-1, m) })
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

// inputOf returns the input whose records state a mutation.
func inputOf(m *mutation.Mutation) mutation.Input {
	if m.Op == mutation.MirrorPut || m.Op == mutation.MirrorDelete {
		return mutation.Mirror
	}
	return mutation.Input(m.Version.Rank)
}

// silentMirror is the mirror of a shard that applies nothing but what is committed, whose mirror is durable, and
// mirrored edges, which have none.
type silentMirror struct{}

// Publish implements shard.Mirror.
func (silentMirror) Publish(context.Context, []mutation.Mutation) error { return nil }

// Flush implements shard.Mirror.
func (silentMirror) Flush(context.Context) error { return nil }

// featurizer returns what fills in the features of the rows, as the old pipeline did.
func (r *run) featurizer() shard.Featurizer {
	if r.Generation == nil {
		return noFeatures{}
	}
	return r.Generation
}

// noFeatures leaves rows alone.
type noFeatures struct{}

// Featurize implements shard.Featurizer.
func (noFeatures) Featurize(*rows.Row) error { return nil }
