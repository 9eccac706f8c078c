package stage

import (
	"bytes"
	"context"

	"giantstream/sink"
	"giantstream/sink/memstore"
)

// CopyOf returns a store with the same objects, for builds that go on from one state in several ways.
func CopyOf(ctx context.Context, from *memstore.Store) (*memstore.Store, error) {
	into := &memstore.Store{}
	for info, err := range from.List(ctx, "", "") {
		if err != nil {
			return nil, err
		}
		data, err := sink.ReadAll(ctx, from, info.Key)
		if err != nil {
			return nil, err
		}
		if err := into.Put(ctx, info.Key, bytes.NewReader(data), int64(len(data))); err != nil {
			return nil, err
		}
	}
	return into, nil
}
