package rows_test

import (
	"context"
	"fmt"

	"giantstream/sink/memstore"
	"giantstream/sink/rows"
)

func Example() {
	ctx := context.Background()
	store := &memstore.Store{}
	batch := func(yield func(rows.Row, error) bool) {
		_ = yield(rows.Row{NodeID: "a", Text: "tent", Labels: []string{"b"}}, nil) &&
			yield(rows.Row{NodeID: "b", Text: "stove", Labels: []string{"a"}}, nil)
	}
	info, err := rows.Nodes.Write(ctx, store, "batch.parquet", rows.WriteOptions{}, batch)
	fmt.Println(info.Rows, err)
	options := rows.ReadOptions{Columns: []string{rows.ColNodeID, rows.ColLabels}}
	for row, err := range rows.Nodes.Read(ctx, store, info.Ref("batch.parquet"), options) {
		fmt.Println(row.NodeID, row.Labels, err)
	}
	// Output:
	// 2 <nil>
	// a [b] <nil>
	// b [a] <nil>
}
