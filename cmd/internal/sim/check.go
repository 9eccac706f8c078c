package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"giantstream/sink/embedding"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/commitlog/checkpoint"
	"giantstream/stream/mutation"
	"giantstream/stream/oracle"
	"giantstream/stream/shard"
)

// check compares what is left at rest with what was sent.
func (w *world) check() (r Result) {
	if w.failure() != "" {
		return r
	}
	ctx := context.Background()
	graph, vectors := w.checkGraph(ctx)
	if w.failure() == "" {
		r.Generations = w.checkGenerations(ctx)
		for _, o := range w.outlets() {
			r.Excused += w.checkSink(ctx, o, graph, vectors)
		}
	}
	for s := range w.plan.shards {
		if w.failure() == "" {
			w.checkRestore(ctx, s)
		}
	}
	for _, head := range w.watch.heads {
		if head != nil {
			r.Manifests += int(head.Seq)
		}
	}
	for _, n := range w.watch.docs {
		r.Checkpoints += int(n)
	}
	for s := range w.plan.shards {
		for range w.store.List(ctx, fmt.Sprintf("shards/%d/compacted/1-", s), "") {
			r.Blocks++
		}
	}
	r.Kills, r.Folds, r.Fakes = w.kills, w.watch.moves, w.watch.fakes
	for _, n := range w.watch.stale {
		r.Late += n
	}
	return r
}

// checkGraph compares the newest committed rows with the graph of all records sent. The far ends of undirected edges
// come from the records themselves, so a mirror that lacks one is found.
func (w *world) checkGraph(ctx context.Context) (map[string]rows.Row, []oracle.NodeVectors) {
	var all []mutation.Mutation
	for s := range w.plan.shards {
		for _, m := range w.topics.below(s, nil) {
			if m.Op != mutation.MirrorPut && m.Op != mutation.MirrorDelete {
				all = append(all, m)
			}
		}
		if w.watch.heads[s] != nil {
			w.watch.checkRows(s)
		}
	}
	g := graphOf(all)
	mirrored := g.links
	if !w.plan.undirected {
		mirrored = nil
	}
	want := g.rows(mirrored)
	cut, err := commitlog.CurrentCut(ctx, &w.store, w.plan.shards)
	if err != nil {
		w.fail("read the heads: %v", err)
		return nil, nil
	}
	horizon, err := cut.OrderHorizon(ctx, &w.store)
	if stated := ordersOf(all).OrderHorizon(w.plan.keep); err != nil || horizon != stated {
		w.fail("orders count after %d, %v, want %d", horizon, err, stated)
		return nil, nil
	}
	var orders []rows.Order
	newest, scanned := map[string]rows.Row{}, map[string]rows.Row{}
	for s := range w.plan.shards {
		for row, err := range cut.Newest(ctx, &w.store, s) {
			if err != nil {
				w.fail("newest rows: %v", err)
				return nil, nil
			}
			newest[row.NodeID] = row.Row
		}
		for row, err := range cut.Facts(ctx, &w.store, s) {
			if err != nil {
				w.fail("facts: %v", err)
				return nil, nil
			}
			scanned[row.NodeID] = row.Row
		}
		for row, err := range cut.Orders(ctx, &w.store, s, horizon) {
			if err != nil {
				w.fail("orders: %v", err)
				return nil, nil
			}
			orders = append(orders, row)
		}
	}
	if diff := difference(newest, want); diff != "" {
		w.fail("the newest rows are not the graph that was sent: %s", diff)
	}
	if diff := difference(scanned, newest); diff != "" {
		w.fail("a scan of the commit log and the newest rows differ: %s", diff)
	}
	if diff := differentOrders(orders, ordersOf(all).OrdersAfter(horizon)); diff != "" {
		w.fail("the newest orders are not those that were sent: %s", diff)
	}
	return want, w.checkVectors(ctx, cut, all)
}

// checkGenerations compares the embeddings stored with each generation with the rows at its cut.
func (w *world) checkGenerations(ctx context.Context) int {
	numbers, err := numbersIn(ctx, &w.store, "/ready.json")
	if err != nil {
		w.fail("generations: %v", err)
		return 0
	}
	for _, g := range numbers {
		ready, err := readGeneration(ctx, &w.store, g)
		if err != nil {
			w.fail("generation %d: %v", g, err)
			return 0
		}
		vectors, err := statedAt(ctx, &w.store, g, ready.cut, w.plan.shards)
		if err != nil {
			w.fail("the vectors of generation %d cannot be read at its cut: %v", g, err)
			return 0
		}
		again := &generation{number: g, Vectors: vectors}
		for s := range w.plan.shards {
			want, err := collect(again.records(ctx, &w.store, ready.cut, s))
			if err != nil {
				w.fail("generation %d cannot be read at its cut: %v", g, err)
				return 0
			}
			got, err := collect(embedding.ReadParquet(ctx, &w.store, ready.Parts[s]))
			if err != nil || !slices.EqualFunc(got, want, sameEmbedding) {
				w.fail("generation %d, shard %d: %v, %v, want %v", g, s, got, err, want)
			}
		}
	}
	return len(numbers)
}

func collect(seq func(func(embedding.Record, error) bool)) (all []embedding.Record, err error) {
	seq(func(r embedding.Record, rerr error) bool {
		all, err = append(all, r), rerr
		return rerr == nil
	})
	return all, err
}

func sameEmbedding(a, b embedding.Record) bool {
	return a.NodeID == b.NodeID && a.Generation == b.Generation && slices.Equal(a.Vector, b.Vector)
}

// checkSink compares the last record of each node on a topic of embeddings with the graph. It returns how many are
// excused: the one case that docs/PROTOCOL.md, "Publication", leaves open.
func (w *world) checkSink(ctx context.Context, outlet commitlog.Outlet, graph map[string]rows.Row,
	all []oracle.NodeVectors) (excused int) {
	at, err := w.stand(ctx, &w.store)
	current := at.generationOn(outlet)
	if err != nil || current == nil {
		return 0
	}
	last, attributes := w.sinks[outlet].newest()
	vectors := stated{}
	for _, v := range all {
		vectors.set(current.number, v)
	}
	for _, id := range slices.Sorted(maps.Keys(last)) {
		if _, ok := graph[id]; !ok {
			w.fail("the sink topic has an embedding of %s, which is no node", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(graph)) {
		row := graph[id]
		got, sent := last[id]
		ok := sent && !got.Deleted && got.Generation == current.number &&
			slices.Equal(got.Vector, embeddingOf(current.number, row.Text, vectors.ofNode(id)))
		if row.Deleted {
			ok = !sent || got.Deleted
		}
		switch {
		case ok:
		case got.loose:
			excused++
		default:
			w.fail("the sink topic ends with %+v for %s, whose row is %+v; generation %d", got.Record, id, facts(row),
				current.number)
		}
		want, beside := row.Attributes, ""
		if row.Deleted || want == mutation.NoAttributes {
			want = ""
		}
		if a := attributes[id]; a.attributes != nil {
			beside = a.attributes.Attributes
		}
		switch {
		case beside == want:
		case attributes[id].loose:
			excused++
		default:
			w.fail("the sink topic ends with the attributes %q of %s, whose row is %+v", beside, id, facts(row))
		}
	}
	return excused
}

// checkRestore opens a shard on an empty disk: it must begin at the newest checkpoint, and find nothing to commit.
func (w *world) checkRestore(ctx context.Context, number int) {
	w.cache = shard.NewCache()
	defer w.cache.Release()
	newest, err := checkpoint.Newest(ctx, &w.store, number)
	if err != nil {
		w.fail("checkpoints of shard %d: %v", number, err)
		return
	}
	p := newProcess(w, len(w.machines), number, newDisk())
	defer p.kill()
	a := p.actor("restore")
	opts := shard.Options{Pipeline: "sim", Shard: number, Shards: w.plan.shards, Dir: "state", Store: a.store(),
		Cache: w.cache, Topics: shard.Topics{Nodes: nodesTopic, Edges: edgesTopic, Further: furtherTopics},
		Writer: "restore", KeepOrders: w.plan.keep,
		Window: shard.Window{Changes: 1 << 20, Bytes: 1 << 30, Time: 24 * time.Hour},
		Rand:   &ids{dice: w.dice, name: a.name}}
	if w.plan.undirected {
		opts.Topics.Mirror, opts.Mirror = mirrorTopic, &mirror{actor: a}
	}
	sh, err := shard.Open(ctx, opts.Simulated(p.disk))
	if err != nil {
		w.fail("shard %d cannot be restored: %v", number, err)
		return
	}
	defer sh.Close() //nolint:errcheck // the disk is thrown away
	if newest != nil && !covered(sh.Next(), newest.Applied) {
		w.fail("shard %d begins at %v on an empty disk; its checkpoint stands at %v", number, sh.Next(), newest.Applied)
	}
	in := &feed{actor: a, shard: number, next: sh.Next(), most: 50}
	for {
		batch, err := in.Next(ctx, 0)
		if err == nil {
			err = sh.Apply(ctx, batch)
		}
		if err != nil {
			w.fail("shard %d on an empty disk: %v", number, err)
			return
		}
		if batch.CaughtUp {
			break
		}
	}
	if m, err := sh.Commit(ctx); err != nil || m != nil {
		w.fail("shard %d on an empty disk commits %+v, %v; nothing is new", number, m, err)
	}
}
