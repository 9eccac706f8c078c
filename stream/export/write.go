package export

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
)

const (
	rowsPrefix       = "rows/"
	embeddingsPrefix = "embeddings/"
	vectorsPrefix    = "vectors/"
	ordersPrefix     = "orders/"
	// encodeBatch is how many texts are encoded at a time.
	encodeBatch = 1024
)

// write writes the parts of all shards.
func (e *run) write(ctx context.Context, src *source, model Model) error {
	hasher := commitlog.NewGraphHasher()
	e.Progress.Stage("write the rows", 0)
	for p := range e.shards {
		part, err := e.writeRows(ctx, p, src, model, hasher)
		if err != nil {
			return fmt.Errorf("export the rows of shard %d: %w", p, err)
		}
		e.doc.Rows = append(e.doc.Rows, part)
	}
	e.doc.Hash = hasher.Sum()
	for p := range e.shards {
		if err := e.writeVectors(ctx, p, src); err != nil {
			return fmt.Errorf("export the vectors of shard %d: %w", p, err)
		}
		if err := e.writeOrders(ctx, p, src); err != nil {
			return fmt.Errorf("export the orders of shard %d: %w", p, err)
		}
	}
	if model == nil {
		return nil
	}
	e.Progress.Stage("write the embeddings", e.doc.Nodes)
	for p := range e.shards {
		part, err := e.writeEmbeddings(ctx, p, src, model)
		if err != nil {
			return fmt.Errorf("export the embeddings of shard %d: %w", p, err)
		}
		e.doc.Embeddings = append(e.doc.Embeddings, part)
	}
	return nil
}

func (e *run) writeRows(ctx context.Context, shard int, src *source, model Model,
	hasher *commitlog.GraphHasher) (sink.Part, error) {
	key := fmt.Sprintf("%spart-%05d.parquet", rowsPrefix, shard)
	info, err := rows.Nodes.Write(ctx, e.Into, key, rows.WriteOptions{}, func(yield func(rows.Row, error) bool) {
		for r, err := range src.rows(ctx, shard) {
			row := r.Row
			if err == nil {
				hasher.Add(&row)
				if row.Deleted {
					e.doc.Deleted++
				} else {
					e.doc.Nodes++
					e.doc.Links += int64(len(row.Labels))
				}
				if model != nil && !row.Deleted {
					err = model.Featurize(&row)
				}
				e.Progress.Add(1)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	})
	return sink.Part{Key: key, Shard: shard, Rows: info.Rows, Bytes: info.Bytes, Checksum: info.Checksum}, err
}

// writeVectors writes the vectors of a shard without nodes and inputs that have none.
func (e *run) writeVectors(ctx context.Context, shard int, src *source) error {
	all := func(yield func(rows.Vectors, error) bool) {
		for row, err := range src.vectors(ctx, shard) {
			if (err != nil || len(row.Names) > 0) && !yield(row.Vectors, err) {
				return
			}
		}
	}
	parts, err := writeTable(ctx, e, rows.NodeVectors, vectorsPrefix, shard, all)
	e.doc.Vectors = append(e.doc.Vectors, parts...)
	return err
}

// writeOrders writes the orders of a shard that have items.
func (e *run) writeOrders(ctx context.Context, shard int, src *source) error {
	all := func(yield func(rows.Order, error) bool) {
		for row, err := range src.orders(ctx, shard) {
			if (err != nil || !row.Deleted) && !yield(row.Order, err) {
				return
			}
		}
	}
	parts, err := writeTable(ctx, e, rows.Orders, ordersPrefix, shard, all)
	e.doc.Orders = append(e.doc.Orders, parts...)
	return err
}

// writeTable writes the rows of a shard's part of a table, if there are any.
func writeTable[R any](ctx context.Context, e *run, t *rows.Table[R], prefix string, shard int,
	all iter.Seq2[R, error]) ([]sink.Part, error) {
	next, stop := iter.Pull2(all)
	defer stop()
	row, err, more := next()
	if !more {
		return nil, nil
	}
	key := fmt.Sprintf("%spart-%05d.parquet", prefix, shard)
	info, err := t.Write(ctx, e.Into, key, rows.WriteOptions{}, func(yield func(R, error) bool) {
		for ; more && yield(row, err) && err == nil; row, err, more = next() {
			e.Progress.Add(1)
		}
	})
	return []sink.Part{{Key: key, Shard: shard, Rows: info.Rows, Bytes: info.Bytes, Checksum: info.Checksum}}, err
}

func (e *run) writeEmbeddings(ctx context.Context, shard int, src *source, model Model) (
	sink.Part, error) {
	neighbours, err := e.fromNeighbours(ctx, shard, src)
	if err != nil {
		return sink.Part{}, err
	}
	key := fmt.Sprintf("%spart-%05d.parquet", embeddingsPrefix, shard)
	info, err := embedding.WriteParquet(ctx, e.Into, key, e.made.Type,
		e.records(ctx, shard, src, model, neighbours))
	return sink.Part{Key: key, Shard: shard, Rows: info.Rows, Bytes: info.Bytes, Checksum: info.Checksum}, err
}

// fromNeighbours returns what the generation has made of the neighbours of nodes without text, by node. It holds for
// nodes that have not changed since the generation's cut, which only rows of the commit log can tell.
func (e *run) fromNeighbours(ctx context.Context, shard int, src *source) (map[string]embedding.Record, error) {
	stored := map[string]embedding.Record{}
	if !src.placed || e.made.FromNeighbours == 0 {
		return stored, nil
	}
	for _, part := range e.made.Parts {
		if part.Shard != shard {
			continue
		}
		for r, err := range embedding.ReadParquet(ctx, e.Store, part.Ref()) {
			if err != nil {
				return nil, err
			}
			if r.Status == embedding.FromNeighbours {
				r.Vector = slices.Clone(r.Vector)
				stored[r.NodeID] = r
			}
		}
	}
	return stored, nil
}

// records yields the embeddings of a shard's live nodes.
func (e *run) records(ctx context.Context, shard int, src *source, model Model,
	neighbours map[string]embedding.Record) iter.Seq2[embedding.Record, error] {
	space := e.made.Space
	if space == e.made.Number {
		space = 0 // as records have it
	}
	return func(yield func(embedding.Record, error) bool) {
		var ids, texts []string
		var out []embedding.Record
		flush := func() bool {
			made, err := model.EmbedNodes(ids, texts)
			if err != nil {
				yield(embedding.Record{}, err)
				return false
			}
			for i, r := range out {
				r.Vector, r.Status, r.Type, r.Scale = made[i].Vector, made[i].Status, made[i].Type, made[i].Scale
				if old, ok := neighbours[r.NodeID]; ok && r.Status == embedding.NoText && old.Seq == r.Seq {
					r = old
				}
				e.Progress.Add(1)
				if !yield(r, nil) {
					return false
				}
			}
			ids, texts, out = ids[:0], texts[:0], out[:0]
			return true
		}
		for r, err := range src.vectors(ctx, shard) {
			if err != nil {
				yield(embedding.Record{}, err)
				return
			}
			model.Follow(&r.Vectors)
		}
		for r, err := range src.rows(ctx, shard) {
			if err != nil {
				yield(embedding.Record{}, err)
				return
			}
			if r.Deleted {
				continue
			}
			if !src.placed {
				r.Seq = 0
			}
			ids, texts = append(ids, r.NodeID), append(texts, r.Text)
			out = append(out, embedding.Record{NodeID: r.NodeID, Generation: e.made.Number,
				Space: space, EventTime: r.EventTime, Shard: shard, Seq: r.Seq})
			if len(out) == encodeBatch && !flush() {
				return
			}
		}
		flush()
	}
}
