package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"time"

	"giantstream/sink"
	"giantstream/sink/dirstore"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
	"giantstream/stream/shard"
)

// The topics of a replay, which exist by name only.
const (
	nodes    = "nodes"
	edges    = "edges"
	mirrored = "mirror"
)

// batchSize is how many mutations are applied at a time.
const batchSize = 1024

// Options of a replay.
type Options struct {
	Shards int
	// Of returns the shard of a node.
	Of         func(id string) int
	Undirected bool
	// Dir is an empty folder for states and rows. It takes somewhat more than the texts and edges twice.
	Dir string
	Log *slog.Logger // discarded if nil
}

// Input hands the mutations of a shard's nodes and edges to each, until that returns an error, which Input returns.
type Input func(ctx context.Context, shard int, each func(mutation.Mutation) error) error

// Graph is what the mutations state: the newest rows of the cut, without features.
type Graph struct {
	Store sink.Store
	Cut   commitlog.Cut
}

// Run applies all mutations of the input and commits the rows of the graph that they state, below Options.Dir. Memory:
// that of a worker with all shards.
func Run(ctx context.Context, o Options, input Input) (_ *Graph, err error) {
	store, err := dirstore.Open(filepath.Join(o.Dir, "rows"))
	if err != nil {
		return nil, err
	}
	r := &run{Options: o, store: store, cache: shard.NewCache()}
	defer func() {
		for _, p := range r.parts {
			err = errors.Join(err, p.close())
		}
		r.cache.Release()
	}()
	for p := range o.Shards {
		if err := r.open(ctx, p); err != nil {
			return nil, err
		}
	}
	for p, part := range r.parts {
		from := func(each func(mutation.Mutation) error) error { return input(ctx, p, each) }
		if err := part.apply(ctx, from); err != nil {
			return nil, fmt.Errorf("replay the mutations of shard %d: %w", p, err)
		}
	}
	for p, part := range r.parts {
		if err := part.apply(ctx, part.letters.forEach); err != nil {
			return nil, fmt.Errorf("replay the links to shard %d: %w", p, err)
		}
		if _, err := part.shard.Commit(ctx); err != nil {
			return nil, err
		}
	}
	cut, err := commitlog.CurrentCut(ctx, store, o.Shards)
	return &Graph{store, cut}, err
}

type run struct {
	Options
	store sink.Store
	cache *shard.Cache
	parts []*part
}

// part is a shard and what waits for it.
type part struct {
	shard   *shard.Shard
	letters *letters // assertions for the shard, from the far ends of its links
}

func (r *run) open(ctx context.Context, p int) error {
	box, err := newLetters()
	if err != nil {
		return err
	}
	one := &part{letters: box}
	r.parts = append(r.parts, one)
	opts := shard.Options{Pipeline: "replay", Shard: p, Shards: r.Shards, Dir: filepath.Join(r.Dir, strconv.Itoa(p)),
		Store: r.store, Cache: r.cache, Topics: shard.Topics{Nodes: nodes, Edges: edges},
		// The only window of a shard ends when Run says so.
		Window: shard.Window{Changes: 1, Bytes: 1, Time: time.Hour}, Writer: "replay", Log: r.Log}
	if r.Undirected {
		opts.Topics.Mirror, opts.Mirror = mirrored, r
	}
	one.shard, err = shard.Open(ctx, opts)
	return err
}

// Publish puts assertions aside until all shards have their own mutations.
func (r *run) Publish(_ context.Context, assertions []mutation.Mutation) error {
	for i := range assertions {
		if err := r.parts[r.Of(assertions[i].ID)].letters.add(&assertions[i]); err != nil {
			return err
		}
	}
	return nil
}

// Flush implements shard.Mirror.
func (r *run) Flush(context.Context) error { return nil }

// apply applies what a source hands out, in batches.
func (p *part) apply(ctx context.Context, source func(each func(mutation.Mutation) error) error) error {
	var batch mutation.Batch
	flush := func() error {
		err := p.shard.Apply(ctx, batch)
		batch = mutation.Batch{}
		return err
	}
	err := source(func(m mutation.Mutation) error {
		if batch.Next == nil {
			batch.Next = map[string]int64{}
		}
		topic, in, next := nodes, mutation.Nodes, m.Version.Offset+1
		switch {
		case m.Op == mutation.MirrorPut || m.Op == mutation.MirrorDelete:
			topic, in, next = mirrored, mutation.Mirror, p.letters.read
		case m.Version.Rank > 0:
			topic, in = edges, mutation.Edges
		}
		batch.Next[topic] = max(batch.Next[topic], next)
		batch.Bytes += int64(len(m.Text) + mutation.VectorBytes(m.Vectors))
		if batch.State(in, next-1, m); len(batch.Mutations) < batchSize && batch.Bytes < 1<<20 {
			return nil
		}
		return errors.Join(ctx.Err(), flush())
	})
	if err != nil {
		return err
	}
	return flush()
}

func (p *part) close() (err error) {
	if p.shard != nil {
		err = p.shard.Close()
	}
	return errors.Join(err, p.letters.Close())
}
