// Package backfill sends files and objects to the input topics: JSON lines,
// CSV or Parquet, from a directory or an object store. It is the only way to load
// a graph other than producing to the topics, and not a second way into the
// state: what comes out is records like anybody's.
//
//	nodes, err := backfill.Files("n/*.jsonl.gz")
//	edges, err := backfill.Objects(ctx, store, "edges/*.parquet")
//	stats, err := backfill.Run(ctx, backfill.Options{Nodes: nodes, Edges: edges, …})
//
// Records are keyed by node id (source id) with Kafka's murmur2, and stamped
// with the mapped event time or else the file's modification time, so that
// sending the same files twice gives the same graph. JSON lines travel as they
// are. A line without a usable id is sent too, without a key: the decoder gives
// it its dead letter, with the original bytes. Only a line over the record limit is dead-lettered here, with
// file and line as its origin, because no broker need take it; it is never held in memory.
//
// With a checkpoint file, a backfill that was interrupted goes on where the
// last acknowledged records end; some may be sent twice, which changes nothing.
package backfill
