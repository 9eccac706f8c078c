// Package backfill sends files and objects to the input topics: JSON lines, CSV or Parquet, from a
// directory or an object store. Apart from producing to the topics it is the only way to load a
// graph, and it is not a second way into the state: it sends records like any other producer. Files
// and Objects list inputs, and Run sends them.
//
// Records are keyed by node id (source id) with Kafka's murmur2 partitioner. They are stamped with
// the mapped event time, or else with the file's modification time, so that sending the same files
// twice gives the same graph. JSON lines travel unchanged. A line without a usable id is sent too,
// without a key, and the decoder makes a dead letter of it with the original bytes. Only a line
// over the record limit is dead-lettered here, with file and line as its origin, because no broker
// has to accept it; such a line is never held in memory.
//
// With a checkpoint file, an interrupted backfill resumes after the last records that were known to
// be acknowledged. Some records may be sent twice, which changes nothing. A file is the same file if
// its content (by hash) and its modification time are.
package backfill
