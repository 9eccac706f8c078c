package qdrant

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"giantstream/sink/vectordb"
	"giantstream/sink/vectordb/internal/rest"
)

// Remaining implements vectordb.Index. Points of deleted nodes count if a release has left the id in them.
func (x *Index) Remaining(ctx context.Context, nodes []string) (map[string]int, error) {
	points, err := x.readIfThere(ctx, x.sinkCollection(), []any{catalogPoint}, "document")
	if err != nil {
		return nil, err
	}
	var c vectordb.Catalog
	for _, at := range points {
		if err := json.Unmarshal([]byte(at.Payload.Document), &c); err != nil {
			return nil, fmt.Errorf("%w: the catalog in %s_sink: %w", vectordb.ErrRefused, x.name, err)
		}
	}
	return c.Remaining(x.name, nodes, func(table string, nodes []string) (n int, err error) {
		ids := make([]any, len(nodes))
		for i, id := range nodes {
			ids[i] = pointID(id)
		}
		found, err := x.readIfThere(ctx, collection(table), ids, "node_id")
		for _, at := range found {
			if at.Payload.NodeID != "" {
				n++
			}
		}
		return n, err
	})
}

// readIfThere returns points of a collection; none if it does not exist.
func (x *Index) readIfThere(ctx context.Context, path string, ids []any, field string) ([]stored, error) {
	found, err := x.read(ctx, path, ids, field)
	if rest.Status(err) == http.StatusNotFound {
		return nil, nil
	}
	return found, err
}
