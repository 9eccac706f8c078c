package milvus

import (
	"context"
	"fmt"
	"time"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"

	"giantstream/internal/retry"
	"giantstream/sink/vectordb"
)

// Create implements vectordb.Index.
func (x *Index) Create(ctx context.Context, t vectordb.Table) error {
	if t.Dim == 0 {
		return nil // there is nothing to put in yet
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.settled(ctx); err != nil {
		return err
	}
	name := t.Name(x.name)
	if x.tables[name] {
		return nil
	}
	if err := x.create(ctx, name, nodeFields(t.Dim), len(x.attributes) > 0); err != nil {
		return err
	}
	if err := x.fence(ctx, name); err != nil {
		return err
	}
	x.tables[name] = true
	return nil
}

// Newer implements vectordb.Index.
func (x *Index) Newer(context.Context, vectordb.Table, vectordb.Table) (bool, error) {
	return false, vectordb.ErrNoControl
}

// Finish implements vectordb.Index.
func (x *Index) Finish(ctx context.Context, t vectordb.Table) error {
	err := x.seal(ctx, t.Name(x.name))
	if missing(err) {
		x.mu.RLock()
		defer x.mu.RUnlock()
		return x.lost(ctx, err)
	}
	return err
}

// seal makes segments of what has come in, and waits until they are indexed.
func (x *Index) seal(ctx context.Context, name string) error {
	f, err := x.c.Flush(ctx, &milvuspb.FlushRequest{CollectionNames: []string{name}})
	if _, err = checked("flush "+name, f, err); err != nil {
		return err
	}
	segments, at := f.GetCollSegIDs()[name].GetData(), f.GetCollFlushTs()[name]
	return await(ctx, func() (bool, error) {
		s, err := x.c.GetFlushState(ctx, &milvuspb.GetFlushStateRequest{CollectionName: name, SegmentIDs: segments,
			FlushTs: at})
		if s, err = checked("wait until "+name+" is flushed", s, err); err != nil || !s.GetFlushed() {
			return false, err
		}
		d, err := x.c.DescribeIndex(ctx, &milvuspb.DescribeIndexRequest{CollectionName: name, FieldName: vectorField})
		if d, err = checked("ask for the index of "+name, d, err); err != nil {
			return false, err
		}
		for _, i := range d.GetIndexDescriptions() {
			if i.GetState() == commonpb.IndexState_Failed {
				return false, fmt.Errorf("the index of %s failed: %s", name, i.GetIndexStateFailReason())
			}
			if i.GetState() != commonpb.IndexState_Finished || i.GetPendingIndexRows() > 0 {
				return false, nil
			}
		}
		return true, nil
	})
}

// await asks until the answer is true.
func await(ctx context.Context, ask func() (bool, error)) error {
	pause := retry.Backoff{Min: 20 * time.Millisecond, Max: 5 * time.Second}
	for {
		if done, err := ask(); done || err != nil {
			return err
		}
		if err := pause.Wait(ctx); err != nil {
			return err
		}
	}
}

// Serve implements vectordb.Index.
func (x *Index) Serve(ctx context.Context, t vectordb.Table, c vectordb.Catalog) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.settled(ctx); err != nil {
		return err
	}
	if err := x.lead(ctx, x.name, t.Name(x.name)); err != nil {
		return err
	}
	return x.put(ctx, catalogRow, c)
}

// Drop implements vectordb.Index.
func (x *Index) Drop(ctx context.Context, t vectordb.Table) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.settled(ctx); err != nil {
		return err
	}
	name := t.Name(x.name)
	delete(x.tables, name)
	there, err := x.has(ctx, name)
	if err != nil || !there {
		return err
	}
	// Milvus drops no collection that an alias leads to.
	all, err := x.aliases(ctx, name)
	if err == nil {
		err = x.dropWriters(ctx, name, all, "")
	}
	if err != nil {
		return err
	}
	st, err := x.c.DropCollection(ctx, &milvuspb.DropCollectionRequest{CollectionName: name})
	return check("drop "+name, st, err)
}
