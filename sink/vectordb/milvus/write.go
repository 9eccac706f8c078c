package milvus

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"

	"giantstream/internal/retry"
	"giantstream/sink/vectordb"
)

// document reads a row of the sink's collection, and is false if there is none.
func (x *Index) document(ctx context.Context, id string, out any) (bool, error) {
	rows, err := x.query(ctx, x.writer(x.sinkCollection()), []string{id}, "document")
	if missing(err) {
		return false, vectordb.ErrTakenOver
	}
	if err != nil {
		return false, err
	}
	texts := rows.text("document")
	if len(texts) == 0 {
		return false, nil
	}
	if err := json.Unmarshal([]byte(texts[0]), out); err != nil {
		return false, fmt.Errorf("%w: row %q of %s: %w", vectordb.ErrRefused, id, x.sinkCollection(), err)
	}
	return true, nil
}

// put writes a row of the sink's collection.
func (x *Index) put(ctx context.Context, id string, in any) error {
	document, err := json.Marshal(in)
	if err != nil {
		return err
	}
	if len(document) > maxID {
		return fmt.Errorf("%w: the row %q of %s would have %d bytes, and Milvus takes %d: the topic has too many "+
			"partitions or shards for this sink", vectordb.ErrRefused, id, x.sinkCollection(), len(document), maxID)
	}
	return x.lost(ctx, x.upsert(ctx, x.writer(x.sinkCollection()), documentColumns(id, string(document)), 1))
}

// lost looks at the outcome of a write.
func (x *Index) lost(ctx context.Context, err error) error {
	switch {
	case err == nil || retry.Final(err):
		return err
	case !missing(err):
		x.suspect.Store(true)
		return err
	}
	if taken := x.check(ctx); taken != nil {
		return taken
	}
	return fmt.Errorf("%w: %w; 'giantstream sink refill' makes it anew", vectordb.ErrRefused, err)
}

// settled makes sure that this process is the writer, and that none of its lost writes can arrive any more. mu is held
// for writing.
func (x *Index) settled(ctx context.Context) error {
	if x.suspect.Load() {
		return x.renew(ctx)
	}
	return x.check(ctx)
}

// Apply implements vectordb.Index.
func (x *Index) Apply(ctx context.Context, b vectordb.Batch) error {
	if x.suspect.Load() {
		x.mu.Lock()
		err := x.settled(ctx)
		x.mu.Unlock()
		if err != nil {
			return err
		}
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	x.doneMu.Lock()
	done := x.done[b.Partition]
	x.doneMu.Unlock()
	if done.Epoch == b.Progress.Epoch && done.Next >= b.Progress.Next {
		return nil
	}
	for _, c := range b.Changes {
		if c.Table.Dim == 0 {
			continue
		}
		if err := x.change(ctx, x.writer(c.Table.Name(x.name)), c); err != nil {
			return err
		}
	}
	if err := x.put(ctx, progressRow(b.Partition), b.Progress); err != nil {
		return err
	}
	x.doneMu.Lock()
	x.done[b.Partition] = b.Progress
	x.doneMu.Unlock()
	return nil
}

// chunk bounds the rows of a request.
const chunk = 1000

// change writes the records that are newer than what is stored.
func (x *Index) change(ctx context.Context, to string, c vectordb.Change) error {
	records := append(append([]vectordb.Record{}, c.Upserts...), c.Deletes...)
	for len(records) > 0 {
		n := min(len(records), chunk)
		if err := x.lost(ctx, x.write(ctx, to, records[:n])); err != nil {
			return err
		}
		records = records[n:]
	}
	if len(x.attributes) == 0 {
		return nil
	}
	for part := range slices.Chunk(c.Attributes, chunk) {
		if err := x.lost(ctx, x.setAttributes(ctx, to, part)); err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) write(ctx context.Context, to string, records []vectordb.Record) error {
	ids := make([]string, len(records))
	for i, r := range records {
		ids[i] = rowID(r.NodeID)
	}
	fields := []string{"id", "offset"}
	if len(x.attributes) > 0 {
		fields = append(fields, dynamicField)
	}
	rows, err := x.query(ctx, to, ids, fields...)
	if err != nil {
		return err
	}
	stored, kept := map[string]int64{}, map[string][]byte{}
	offsets, further := rows.numbers("offset"), rows.further()
	for i, id := range rows.text("id") {
		stored[id] = offsets[i]
		if i < len(further) {
			kept[id] = further[i]
		}
	}
	var upserts []vectordb.Record
	var deletes []string
	for i, r := range records {
		at, there := stored[ids[i]]
		switch {
		case there && at >= r.Offset:
		case !r.Deleted && len(r.Vector) > 0:
			upserts = append(upserts, r)
		case there: // a node without a vector has no row
			deletes = append(deletes, ids[i])
		}
	}
	if len(upserts) > 0 {
		columns := nodeColumns(upserts)
		if len(x.attributes) > 0 {
			columns = append(columns, keptColumn(upserts, kept))
		}
		if err := x.upsert(ctx, to, columns, len(upserts)); err != nil {
			return err
		}
	}
	if len(deletes) == 0 {
		return nil
	}
	m, err := x.c.Delete(ctx, &milvuspb.DeleteRequest{CollectionName: to, Expr: among(deletes)})
	_, err = checked("delete rows of "+to, m, err)
	return err
}
