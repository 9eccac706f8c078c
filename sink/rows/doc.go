// Package rows reads and writes instance-to-label rows in Parquet: the batches that the stream
// commits and the training set of a generation. docs/format/rows.md is the page of the format.
//
// Rows come out in the order in which they went in. The caller sorts; batches and training sets are
// in node_id order throughout. Reading is the slow side: name the columns that you need in
// ReadOptions.
package rows
