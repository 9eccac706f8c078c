package milvus

import (
	"context"
	"encoding/json"
	"fmt"

	"giantstream/sink/vectordb"
)

// Remaining implements vectordb.Index. It reads by the names of the collections, which are no writer's.
func (x *Index) Remaining(ctx context.Context, nodes []string) (map[string]int, error) {
	rows, err := x.queryIfThere(ctx, x.sinkCollection(), []string{catalogRow}, "document")
	if err != nil {
		return nil, err
	}
	var c vectordb.Catalog
	for _, document := range rows.text("document") {
		if err := json.Unmarshal([]byte(document), &c); err != nil {
			return nil, fmt.Errorf("%w: row %q of %s: %w", vectordb.ErrRefused, catalogRow, x.sinkCollection(), err)
		}
	}
	return c.Remaining(x.name, nodes, func(table string, nodes []string) (int, error) {
		ids := make([]string, len(nodes))
		for i, id := range nodes {
			ids[i] = rowID(id)
		}
		rows, err := x.queryIfThere(ctx, table, ids, "id")
		return len(rows.text("id")), err
	})
}

// queryIfThere is query; there are no rows if there is no collection.
func (x *Index) queryIfThere(ctx context.Context, from string, ids []string, field string) (rows, error) {
	found, err := x.query(ctx, from, ids, field)
	if missing(err) {
		return nil, nil
	}
	return found, err
}
