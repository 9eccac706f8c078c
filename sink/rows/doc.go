// Package rows reads and writes instance-to-label rows in Parquet: the batches
// that the stream commits and the training set of a generation.
// docs/format/rows.md is the page of the format.
//
//	info, err := rows.Write(ctx, store, key, seq)       // seq yields Row, error
//	for row, err := range rows.Read(ctx, store, key, rows.ReadOptions{}) { … }
//
// Rows come out in the order in which they went in; the caller sorts (batches
// and training sets are in node_id order throughout). Reading is the slow
// side: name the columns that you need in ReadOptions.
package rows
