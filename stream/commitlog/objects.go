package commitlog

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"giantstream/sink"
	"giantstream/sink/rows"
)

// A row object ends at whichever bound is reached first.
const (
	defaultObjectRows = 50_000
	maxObjectBytes    = 128 << 20 // in memory
)

// nodes is the name of the table of nodes, whose objects name none.
const nodes = ""

// WriteObjects writes rows of a table into as many objects as they need, at most maxRows rows each; 0 means
// 50,000. key names the next object. The second result is the number of rows in all objects.
func WriteObjects[R any](ctx context.Context, store sink.Store, t *rows.Table[R], key func() string, maxRows int64,
	opts rows.WriteOptions, in iter.Seq2[R, error]) (objects []Object, total int64, err error) {
	if maxRows <= 0 {
		maxRows = defaultObjectRows
	}
	next, stop := iter.Pull2(in)
	defer stop()
	row, err, ok := next()
	for ok {
		var size, count int64
		chunk := func(yield func(R, error) bool) {
			for ok && count < maxRows && size < maxObjectBytes {
				count++
				size += t.MemoryBytes(&row)
				if !yield(row, err) {
					return
				}
				row, err, ok = next()
			}
		}
		key := key()
		info, err := t.Write(ctx, store, key, opts, chunk)
		if err != nil {
			return nil, 0, err
		}
		objects = append(objects, Object{Table: t.Name, Key: key, Rows: info.Rows, Bytes: info.Bytes,
			Checksum: info.Checksum})
		total += info.Rows
	}
	return objects, total, nil
}

func rowsPrefix(shard int) string { return shardPrefix(shard) + "rows/" }

// RowKey names the n-th row object that a session writes, for a window.
func RowKey(shard int, seq int64, session string, n int64) string {
	return fmt.Sprintf("%s%020d-%s-%d.parquet", rowsPrefix(shard), seq, session, n)
}

// parseRowKey is the inverse of RowKey.
func parseRowKey(shard int, key string) (seq int64, session string, ok bool) {
	name := strings.TrimSuffix(strings.TrimPrefix(key, rowsPrefix(shard)), ".parquet")
	parts := strings.Split(name, "-")
	if len(parts) != 3 {
		return 0, "", false
	}
	seq, err := strconv.ParseInt(parts[0], 10, 64)
	n, nerr := strconv.ParseInt(parts[2], 10, 64)
	ok = err == nil && nerr == nil && seq > 0 && RowKey(shard, seq, parts[1], n) == key
	return seq, parts[1], ok
}

// IsRows says whether a key is that of a window's row object. Such objects are written once.
func IsRows(key string) bool {
	parts := strings.Split(key, "/")
	return len(parts) == 4 && parts[0] == "shards" && parts[2] == "rows"
}

// Removed counts what was removed.
type Removed struct {
	Objects int
	Bytes   int64
}

// object removes one object and counts it.
func (r *Removed) object(ctx context.Context, store sink.Store, info sink.Info) error {
	if err := store.Delete(ctx, info.Key); err != nil {
		return err
	}
	r.Objects++
	r.Bytes += info.Size
	return nil
}
