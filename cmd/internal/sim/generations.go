package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/lease"
	"giantstream/stream/commitlog"
	"giantstream/stream/publish"
)

// Generations are stubs: nothing is trained. What counts for the protocol is that they are built under a lease from a
// cut, artifact by artifact, that a build is resumed, and that processes take them up at different times.

const generationPrefix = "generations/"

func cutKey(g int64) string   { return fmt.Sprintf("%s%06d/cut.json", generationPrefix, g) }
func readyKey(g int64) string { return fmt.Sprintf("%s%06d/ready.json", generationPrefix, g) }
func partKey(g int64, shard int) string {
	return fmt.Sprintf("%s%06d/embeddings/part-%05d.parquet", generationPrefix, g, shard)
}

// generation is a generation that a process serves.
type generation struct {
	number int64
	cut    commitlog.Cut
	// What readyKey holds: the embeddings, one part per shard, and what counts of the vectors at the cut.
	Parts   []sink.Ref
	Vectors stated
}

// model returns what a shard's follower needs of a generation, nil without one.
func (g *generation) model(shard int) *publish.Model {
	if g == nil {
		return nil
	}
	return &publish.Model{Generation: g.number, Cut: g.cut[shard], Parts: g.Parts[shard : shard+1], Dim: dim,
		Attributes: []string{"brand", "price"}, Follow: func() publish.Encoder { return g.following() }}
}

// numbersIn lists the generations that have an object of a name.
func numbersIn(ctx context.Context, s sink.Store, name string) (numbers []int64, err error) {
	for info, err := range s.List(ctx, generationPrefix, "") {
		if err != nil {
			return nil, err
		}
		var g int64
		if strings.HasSuffix(info.Key, name) {
			if _, err := fmt.Sscanf(info.Key, generationPrefix+"%d/", &g); err != nil {
				return nil, fmt.Errorf("%s: %w", info.Key, err)
			}
			numbers = append(numbers, g)
		}
	}
	return numbers, nil
}

// readGeneration reads a generation that is ready.
func readGeneration(ctx context.Context, s sink.Store, number int64) (g *generation, err error) {
	g = &generation{number: number}
	if g.cut, err = readCut(ctx, s, g.number); err != nil {
		return nil, err
	}
	data, err := sink.ReadAll(ctx, s, readyKey(g.number))
	if err != nil {
		return nil, err
	}
	return g, json.Unmarshal(data, g)
}

func readCut(ctx context.Context, s sink.Store, g int64) (cut commitlog.Cut, err error) {
	data, err := sink.ReadAll(ctx, s, cutKey(g))
	if err != nil {
		return nil, err
	}
	return cut, json.Unmarshal(data, &cut)
}

// oldestCut returns the oldest manifest of a shard in the cut of any generation, ready or being built; 0 before the
// first.
func oldestCut(ctx context.Context, s sink.Store, shard int) (int64, error) {
	numbers, err := numbersIn(ctx, s, "/cut.json")
	if err != nil || len(numbers) == 0 {
		return 0, err
	}
	oldest := int64(math.MaxInt64)
	for _, g := range numbers {
		cut, err := readCut(ctx, s, g)
		if err != nil {
			return 0, err
		}
		oldest = min(oldest, cut[shard])
	}
	return oldest, nil
}

// refresh takes up new generations, and builds one when it is due.
func (p *process) refresh() {
	w, a := p.world, p.actor("refresh")
	s := a.store()
	l, err := lease.New(lease.Options{Store: s, Name: "refresh", Holder: p.name, TTL: w.plan.leaseTTL,
		Rand: &ids{dice: w.dice, name: a.name}})
	if err != nil {
		w.fail("lease: %v", err)
		return
	}
	for i := 0; p.ctx.Err() == nil; i++ {
		r := w.dice.randFor("refresh", a.name, fmt.Sprint(i))
		_, slot := a.count("tick", "")
		_ = w.pause(p.ctx, drawDuration(r, 200*time.Millisecond, 2*time.Second), slot)
		at, err := w.stand(p.ctx, s)
		if err != nil {
			continue
		}
		number := int64(1)
		if at != nil {
			number = at.newest + 1
			p.serving.Store(at)
		}
		due := time.Since(w.start) > time.Duration(number)*w.plan.refreshEvery && number <= int64(w.plan.generations)
		if !due || w.isHealed() {
			continue
		}
		w.building.Add(1)
		if held, err := l.Acquire(p.ctx); err == nil {
			p.build(a, held, number)
		}
		w.building.Add(-1)
	}
}

// build builds a generation under the lease, or finishes the build of another process.
func (p *process) build(a *actor, held *lease.Held, number int64) {
	p.world.watch.holds(a, held.Number())
	ctx, release := held.Keep(p.ctx)
	defer release()
	err := p.artifacts(ctx, held.Store(), number)
	p.world.trace.note(a.name, fmt.Sprintf("generation %d: %v", number, err))
}

func (p *process) artifacts(ctx context.Context, s sink.Store, number int64) error {
	cut, err := readCut(ctx, s, number)
	if errors.Is(err, sink.ErrNotFound) {
		if cut, err = commitlog.CurrentCut(ctx, s, p.world.plan.shards); err != nil {
			return err
		}
		var data []byte
		if data, err = json.Marshal(cut); err != nil {
			return err
		}
		if err = s.Create(ctx, cutKey(number), data); errors.Is(err, sink.ErrExists) {
			cut, err = readCut(ctx, s, number)
		}
	}
	if err != nil {
		return err
	}
	ready := &generation{number: number}
	if ready.Vectors, err = statedAt(ctx, s, number, cut, p.world.plan.shards); err != nil {
		return err
	}
	for shard := range p.world.plan.shards {
		key := partKey(number, shard)
		info, err := embedding.WriteParquet(ctx, s, key, embedding.Float32, ready.records(ctx, s, cut, shard))
		if err != nil {
			return err
		}
		ready.Parts = append(ready.Parts, sink.Ref{Key: key, Bytes: info.Bytes, Checksum: info.Checksum})
	}
	data, err := json.Marshal(ready)
	if err != nil {
		return err
	}
	return sink.PutBytes(ctx, s, readyKey(number), data)
}

// records yields the embeddings of a shard's live nodes at a cut, in ascending order of id. They are of the nodes' own
// rows, as training reads them: attributes that were committed later make no new embedding.
func (g *generation) records(ctx context.Context, s sink.Store, cut commitlog.Cut,
	shard int) iter.Seq2[embedding.Record, error] {
	return func(yield func(embedding.Record, error) bool) {
		var all []embedding.Record
		for row, err := range cut.Graph(ctx, s, shard) {
			if err != nil {
				yield(embedding.Record{}, err)
				return
			}
			if row.Deleted {
				continue
			}
			r := embedding.Record{NodeID: row.NodeID, Generation: g.number, EventTime: row.EventTime, Shard: shard,
				Seq: row.Seq}
			r.SetVector(row.Text, embeddingOf(g.number, row.Text, g.Vectors.ofNode(row.NodeID)))
			all = append(all, r)
		}
		slices.SortFunc(all, func(a, b embedding.Record) int { return strings.Compare(a.NodeID, b.NodeID) })
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}
