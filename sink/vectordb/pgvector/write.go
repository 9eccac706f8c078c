package pgvector

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"giantstream/sink/embedding"
	"giantstream/sink/vectordb"
)

// Save implements vectordb.Index.
func (x *Index) Save(ctx context.Context, c vectordb.Catalog) error {
	return x.owned(ctx, func(tx pgx.Tx) error { return x.save(ctx, tx, c) })
}

func (x *Index) save(ctx context.Context, tx pgx.Tx, c vectordb.Catalog) error {
	_, err := tx.Exec(ctx, fmt.Sprintf("UPDATE %s_sink SET catalog = $1", x.opts.Name), c)
	return err
}

// Create implements vectordb.Index.
func (x *Index) Create(ctx context.Context, t vectordb.Table) error {
	name := t.Name(x.opts.Name)
	vector := "vector"
	if t.Dim > 0 {
		vector = fmt.Sprintf("vector(%d)", t.Dim)
	}
	return x.owned(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %s (
			node_id text PRIMARY KEY,
			embedding %s,
			generation bigint NOT NULL,
			space bigint NOT NULL,
			status text NOT NULL,
			event_time timestamptz NOT NULL,
			shard int NOT NULL,
			seq bigint NOT NULL,
			topic_offset bigint NOT NULL)`, name, vector))
		if err == nil {
			err = checkColumns(ctx, tx, name, append(slices.Clone(shown), "topic_offset"))
		}
		if err == nil {
			err = x.addAttributes(ctx, tx, name)
		}
		if err != nil || t.Dim == 0 {
			return err
		}
		var open bool
		err = tx.QueryRow(ctx, `SELECT atttypmod < 0 FROM pg_attribute
			WHERE attrelid = $1::regclass AND attname = 'embedding'`, name).Scan(&open)
		if err != nil || !open {
			return err
		}
		// It has begun with nodes without vectors, and so has none of another dimension.
		_, err = tx.Exec(ctx, fmt.Sprintf("ALTER TABLE %s ALTER COLUMN embedding TYPE %s", name, vector))
		return err
	})
}

// Apply implements vectordb.Index.
func (x *Index) Apply(ctx context.Context, b vectordb.Batch) error {
	return x.owned(ctx, func(tx pgx.Tx) error {
		for _, c := range b.Changes {
			name := c.Table.Name(x.opts.Name)
			if err := upsert(ctx, tx, name, c.Upserts); err != nil {
				return err
			}
			if err := remove(ctx, tx, name, c.Deletes); err != nil {
				return err
			}
			if err := x.setAttributes(ctx, tx, name, c.Attributes); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, fmt.Sprintf(`INSERT INTO %s_sink_progress AS p (partition, progress) VALUES ($1, $2)
			ON CONFLICT (partition) DO UPDATE SET progress = excluded.progress, at = now()
			WHERE ((p.progress->>'epoch')::bigint, (p.progress->>'next')::bigint) <=
				((excluded.progress->>'epoch')::bigint, (excluded.progress->>'next')::bigint)`, x.opts.Name),
			b.Partition, b.Progress)
		return err
	})
}

func upsert(ctx context.Context, tx pgx.Tx, name string, records []vectordb.Record) error {
	if len(records) == 0 {
		return nil
	}
	n := len(records)
	ids, vectors, statuses := make([]string, n), make([]*string, n), make([]string, n)
	times := make([]time.Time, n)
	generations, spaces, seqs, offsets := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	shards := make([]int32, n)
	for i, r := range records {
		ids[i], times[i], seqs[i], offsets[i] = r.NodeID, time.UnixMicro(r.EventTime), r.Seq, r.Offset
		shards[i] = int32(r.Shard) //nolint:gosec // the codec bounds it
		generations[i], spaces[i] = r.Generation, r.Space
		if r.Space == 0 {
			spaces[i] = r.Generation
		}
		if statuses[i] = string(r.Status); r.Status == embedding.FromText {
			statuses[i] = "text"
		}
		if len(r.Vector) > 0 {
			text := literal(r.Vector)
			vectors[i] = &text
		}
	}
	_, err := tx.Exec(ctx, fmt.Sprintf(`INSERT INTO %s AS t
			(node_id, embedding, generation, space, status, event_time, shard, seq, topic_offset)
		SELECT id, v::vector, g, s, status, at, shard, seq, o FROM unnest(
			$1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::timestamptz[], $7::int[], $8::bigint[],
			$9::bigint[]) AS r (id, v, g, s, status, at, shard, seq, o)
		ON CONFLICT (node_id) DO UPDATE SET embedding = excluded.embedding, generation = excluded.generation,
			space = excluded.space, status = excluded.status, event_time = excluded.event_time, shard = excluded.shard,
			seq = excluded.seq, topic_offset = excluded.topic_offset
		WHERE t.topic_offset < excluded.topic_offset`, name),
		ids, vectors, generations, spaces, statuses, times, shards, seqs, offsets)
	return err
}

// literal writes a vector as pgvector reads it: the shortest decimals that give the same numbers.
func literal(v []float32) string {
	b := make([]byte, 0, 12*len(v))
	b = append(b, '[')
	for i, x := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(x), 'g', -1, 32)
	}
	return string(append(b, ']'))
}

func remove(ctx context.Context, tx pgx.Tx, name string, records []vectordb.Record) error {
	if len(records) == 0 {
		return nil
	}
	ids, offsets := make([]string, len(records)), make([]int64, len(records))
	for i, r := range records {
		ids[i], offsets[i] = r.NodeID, r.Offset
	}
	_, err := tx.Exec(ctx, fmt.Sprintf(`DELETE FROM %s AS t USING unnest($1::text[], $2::bigint[]) AS r (id, o)
		WHERE t.node_id = r.id AND t.topic_offset < r.o`, name), ids, offsets)
	return err
}

// Newer implements vectordb.Index.
func (x *Index) Newer(ctx context.Context, old, by vectordb.Table) (newer bool, err error) {
	err = x.pool.QueryRow(ctx, fmt.Sprintf(`SELECT NOT EXISTS (SELECT FROM %s AS o WHERE NOT EXISTS (
		SELECT FROM %s AS b WHERE b.node_id = o.node_id AND b.topic_offset > o.topic_offset))`,
		old.Name(x.opts.Name), by.Name(x.opts.Name))).Scan(&newer)
	return newer, classify(err)
}

// Finish implements vectordb.Index.
func (x *Index) Finish(ctx context.Context, t vectordb.Table) error {
	name := t.Name(x.opts.Name)
	if t.Dim > maxIndexed {
		x.opts.Log.Warn("pgvector indexes no vectors of so many dimensions; searches will read the whole table. "+
			"Publish fewer with sink.embedding_dim", "dimensions", t.Dim, "most", maxIndexed)
	} else {
		with := ""
		if x.opts.M > 0 && x.opts.EFConstruction > 0 {
			with = fmt.Sprintf("WITH (m = %d, ef_construction = %d)", x.opts.M, x.opts.EFConstruction)
		}
		_, err := x.pool.Exec(ctx, fmt.Sprintf("CREATE INDEX IF NOT EXISTS %s_hnsw ON %s "+
			"USING hnsw (embedding vector_cosine_ops) %s", name, name, with))
		if err != nil {
			return classify(err)
		}
	}
	_, err := x.pool.Exec(ctx, "ANALYZE "+name)
	return classify(err)
}

// Serve implements vectordb.Index.
func (x *Index) Serve(ctx context.Context, t vectordb.Table, c vectordb.Catalog) error {
	return x.owned(ctx, func(tx pgx.Tx) error {
		if err := hurry(ctx, tx); err != nil {
			return err
		}
		if err := x.show(ctx, tx, t.Name(x.opts.Name)); err != nil {
			return err
		}
		return x.save(ctx, tx, c)
	})
}

// Drop implements vectordb.Index.
func (x *Index) Drop(ctx context.Context, t vectordb.Table) error {
	return x.owned(ctx, func(tx pgx.Tx) error {
		if err := hurry(ctx, tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "DROP TABLE IF EXISTS "+t.Name(x.opts.Name))
		return err
	})
}

// hurry bounds the wait for locks in a transaction.
func hurry(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d", lockTimeout.Milliseconds()))
	return err
}
