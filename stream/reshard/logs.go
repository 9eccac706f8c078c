package reshard

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"giantstream/internal/parallel"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/shard"
)

// layers are cuts of the old log, each after the one before. Layer i becomes manifest i+1 of each new shard: the
// newest rows at its cut of those nodes that have changed since the cut before.
type layers struct {
	cuts     []commitlog.Cut
	horizons []rows.Horizon // of orders, by cut
	// generation and published are the manifests of the new logs that the generation and the cursors stand at.
	generation, published int64
}

// layers cuts the log where a generation or the cursors of the embeddings stand, so that in the new logs they
// stand behind the same rows.
func (r *run) layers(cursors []commitlog.Published) layers {
	heads := commitlog.Cut{}
	for p, head := range r.heads {
		if heads[p] = 0; head != nil {
			heads[p] = head.Seq
		}
	}
	if r.Generation == nil {
		return layers{cuts: []commitlog.Cut{heads}}
	}
	l := layers{generation: 1}
	cut := commitlog.Cut{}
	for p := range r.heads {
		cut[p] = r.Generation.Cut()[p]
	}
	l.cuts = append(l.cuts, cut)
	published, after := commitlog.Cut{}, true
	for p := range r.heads {
		published[p] = cursors[p].Seq
		after = after && cursors[p].Seq >= cut[p]
	}
	// Cursors before the generation's cut stand at no manifest of the new logs, and begin before the first one.
	if after {
		if l.published = 1; !maps.Equal(published, cut) {
			l.cuts, l.published = append(l.cuts, published), 2
		}
	}
	if !maps.Equal(heads, l.cuts[len(l.cuts)-1]) {
		l.cuts = append(l.cuts, heads)
	}
	return l
}

// rowsInMemory bounds the rows that the writers of all shards gather together, besides what a single object may
// have.
const rowsInMemory = 200_000

// writeLogs writes the commit logs of the new shards, with the checkpoints of their states.
func (r *run) writeLogs(ctx context.Context, states *shard.Rekeyed, l layers) error {
	newest := make([]*commitlog.Manifest, r.shards)
	for i := range l.cuts {
		r.Progress.Stage("write the rows", 0)
		written := make([]*commitlog.Manifest, r.shards)
		for q := range written {
			written[q] = &commitlog.Manifest{Format: commitlog.ManifestFormat, Shard: q, Seq: int64(i + 1),
				OrderHorizon: l.horizons[i], Writer: "reshard-" + r.marker.Attempt, Created: time.Now().UTC()}
		}
		err := parallel.Deal(ctx, r.rows(ctx, l, i), r.shards, func(row *rows.Row) int { return r.shardOf(row.NodeID) },
			func(ctx context.Context, q int, in iter.Seq2[rows.Row, error]) error {
				return writeRows(ctx, r, written[q], rows.Nodes, noted(written[q], in))
			})
		if err != nil {
			return err
		}
		err = parallel.Deal(ctx, r.orders(ctx, l, i), r.shards,
			func(row *rows.Order) int { return r.shardOf(row.OrderID) },
			func(ctx context.Context, q int, in iter.Seq2[rows.Order, error]) error {
				return writeRows(ctx, r, written[q], rows.Orders, in)
			})
		if err != nil {
			return err
		}
		err = parallel.Deal(ctx, r.vectors(ctx, l, i), r.shards,
			func(row *rows.Vectors) int { return r.shardOf(row.NodeID) },
			func(ctx context.Context, q int, in iter.Seq2[rows.Vectors, error]) error {
				return writeRows(ctx, r, written[q], rows.NodeVectors, in)
			})
		if err != nil {
			return err
		}
		for q, m := range written {
			if i == len(l.cuts)-1 {
				r.complete(m)
			}
			states.Count(m)
			m.Follow(newest[q])
			data, err := m.Encode(r.Into.Pipeline())
			if err == nil {
				err = r.Into.Create(ctx, commitlog.ManifestKey(q, m.Seq), data)
			}
			if err != nil {
				return fmt.Errorf("manifest %d of shard %d: %w", m.Seq, q, err)
			}
			newest[q] = m
		}
	}
	r.Progress.Stage("store the states", int64(r.shards))
	for _, head := range newest {
		if err := states.Checkpoint(ctx, r.Into, head); err != nil {
			return err
		}
		r.Progress.Add(1)
	}
	return nil
}

// rows yields the rows of the nodes of a layer, of all old shards, in ascending order.
func (r *run) rows(ctx context.Context, l layers, i int) iter.Seq2[rows.Row, error] {
	var in []iter.Seq2[rows.Row, error]
	for p, before := range l.changed(i) {
		in = append(in, func(yield func(rows.Row, error) bool) {
			for row, err := range l.cuts[i].Newest(ctx, r.From, p) {
				if err == nil && (row.Seq <= before || r.Forget[row.NodeID]) {
					continue
				}
				r.Progress.Add(1)
				if !yield(row.Row, err) || err != nil {
					return
				}
			}
		})
	}
	return parallel.Merge(in, func(row *rows.Row) string { return row.NodeID })
}

// orders yields the rows of the orders of a layer, of all old shards, in ascending order.
func (r *run) orders(ctx context.Context, l layers, i int) iter.Seq2[rows.Order, error] {
	var in []iter.Seq2[rows.Order, error]
	for p, before := range l.changed(i) {
		in = append(in, func(yield func(rows.Order, error) bool) {
			for row, err := range l.cuts[i].NewestOrders(ctx, r.From, p, 0) {
				// A row that has expired takes the place of one that may have been written in a layer before.
				if err == nil && (row.Seq <= before || l.horizons[i].Forgets(row.EventTime)) {
					continue
				}
				row.Expire(l.horizons[i])
				r.forgetItems(&row.Order)
				r.Progress.Add(1)
				if !yield(row.Order, err) || err != nil {
					return
				}
			}
		})
	}
	return parallel.Merge(in, rows.Orders.Key)
}

// vectors yields the rows of the vectors of a layer, of all old shards, in ascending order.
func (r *run) vectors(ctx context.Context, l layers, i int) iter.Seq2[rows.Vectors, error] {
	var in []iter.Seq2[rows.Vectors, error]
	for p, before := range l.changed(i) {
		in = append(in, func(yield func(rows.Vectors, error) bool) {
			for row, err := range l.cuts[i].NewestVectors(ctx, r.From, p) {
				if err == nil && (r.Forget[row.NodeID] || row.Seq <= before) {
					continue
				}
				r.Progress.Add(1)
				if !yield(row.Vectors, err) || err != nil {
					return
				}
			}
		})
	}
	return parallel.Merge(in, rows.NodeVectors.Key)
}

// changed yields the old shards that have rows in a layer, and the manifest of the layer before.
func (l layers) changed(i int) iter.Seq2[int, int64] {
	return func(yield func(int, int64) bool) {
		for _, p := range slices.Sorted(maps.Keys(l.cuts[i])) {
			before := int64(0)
			if i > 0 {
				before = l.cuts[i-1][p]
			}
			if l.cuts[i][p] != before && !yield(p, before) {
				return
			}
		}
	}
}

// forgetItems takes nodes that are to be forgotten out of an order.
func (r *run) forgetItems(o *rows.Order) {
	if len(r.Forget) == 0 || !slices.ContainsFunc(o.Items, func(item string) bool { return r.Forget[item] }) {
		return
	}
	items, quantities, times := o.Items, o.Quantities, o.LineTimes()
	o.Items, o.Quantities = nil, nil
	var left []int64
	for i, item := range items {
		if !r.Forget[item] {
			o.Items, o.Quantities = append(o.Items, item), append(o.Quantities, quantities[i])
			left = append(left, times[i])
		}
	}
	o.SetLineTimes(left)
	o.Deleted = len(o.Items) == 0
}

// noted notes the newest generation of rows in their manifest.
func noted(m *commitlog.Manifest, in iter.Seq2[rows.Row, error]) iter.Seq2[rows.Row, error] {
	return func(yield func(rows.Row, error) bool) {
		for row, err := range in {
			m.Generation = max(m.Generation, row.Generation)
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// writeRows writes a table of a window of a new shard, and enters its objects in the manifest.
func writeRows[R any](ctx context.Context, r *run, m *commitlog.Manifest, t *rows.Table[R],
	in iter.Seq2[R, error]) error {
	n := len(m.Objects)
	key := func() string {
		n++
		return commitlog.RowKey(m.Shard, m.Seq, r.marker.Attempt, int64(n-1))
	}
	objects, written, err := commitlog.WriteObjects(ctx, r.Into, t, key, max(1, int64(rowsInMemory/max(4, r.shards))),
		rows.WriteOptions{Compression: r.Compression}, in)
	if m.Objects = append(m.Objects, objects...); t.Name == rows.Nodes.Name {
		m.Rows = written
	}
	return err
}

// complete makes a manifest the head of its shard: it says what was consumed, and what is lost.
func (r *run) complete(m *commitlog.Manifest) {
	m.Next, m.Inputs = map[string]int64{}, map[string]commitlog.Input{}
	for topic, starts := range r.inputs {
		m.Next[topic], m.Inputs[topic] = starts[m.Shard].next, starts[m.Shard].input
	}
	for p, head := range r.heads {
		if head == nil || p%r.shards != m.Shard {
			continue
		}
		for _, l := range head.Lost {
			m.Lost = commitlog.AddLost(m.Lost, l)
		}
		r.carryCounts(m, head)
	}
}

// carryCounts adds what an old shard has counted to a new head. The mirror has no history: the new one is another
// topic, and what goes through it is not input.
func (r *run) carryCounts(m, head *commitlog.Manifest) {
	for old, now := range r.renamed() {
		counted, ok := head.Counted[old]
		if !ok {
			continue
		}
		if m.Counted == nil {
			m.Counted = map[string]commitlog.Counted{}
		}
		c := m.Counted[now]
		total := c.Total().Plus(counted.Total())
		m.Counted[now] = commitlog.Counted{From: m.Next[now], Former: &total}
	}
}

// cursors reads the cursors of the embeddings of the old shards.
func (r *run) cursors(ctx context.Context) (all []commitlog.Published, err error) {
	for p := range r.heads {
		at, err := commitlog.LoadPublished(ctx, r.From, p)
		if err != nil {
			return nil, err
		}
		all = append(all, at)
	}
	return all, nil
}

// writeCursors writes cursors that claim no more than those of all old shards together.
func (r *run) writeCursors(ctx context.Context, old []commitlog.Published, l layers) error {
	var at commitlog.Published
	for _, c := range old {
		if r.Generation == nil || c.Generation > r.Generation.Number() {
			return nil // of a generation that is damaged, which is not copied
		}
		switch {
		case c.Topic == "" && c.Generation == 0 && c.Seq == 0: // nothing of this shard was published
			continue
		case at.Generation == 0:
			at = c
		case at.Topic != c.Topic || at.TopicID != c.TopicID || at.Format != c.Format:
			return nil // without a cursor everything is published again
		}
		at.Generation, at.End = min(at.Generation, c.Generation), max(at.End, c.End)
		at.Mixed = at.Mixed || c.Mixed
	}
	if at.Generation == 0 {
		return nil
	}
	at.Seq = l.published
	for q := range r.shards {
		cursor, err := commitlog.OpenCursor(ctx, r.Into, q)
		if err == nil {
			err = cursor.Move(ctx, at, "reshard-"+r.marker.Attempt)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
