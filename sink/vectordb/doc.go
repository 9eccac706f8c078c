// Package vectordb keeps an index of vectors equal to the embeddings topic. A Follower takes the topic's records,
// partition by partition, and an Index is the database: pgvector, qdrant, opensearch and milvus below this package.
// The package knows no Kafka: its caller reads the topic and hands over the records with their offsets.
//
// # What readers see
//
// Every generation fills a table of its own. Readers ask for one name, a view or an alias, and it leads to one table at
// a time: that of the newest generation that is complete. So no reader meets two generations at once.
//
// A generation is complete when the follower has read every partition to the end that it had when the table was made,
// and one of these holds:
//
//   - the newest control record of every shard, in every partition, names the generation; or
//   - the topic has no control records, the follower has read all of it, and every node of every other table has a
//     newer record in this one. An Index that cannot compare tables (ErrNoControl) waits for control records, except
//     for its first table.
//
// A generation that is published again, because an operator has gone back to it, is filled and served like a new one.
//
// # Exactly once, in effect
//
// The version of a record is its offset: the topic keeps the last record of a key, and so does the table. (Neither
// the record's seq nor its event time would do. A pipeline with another number of shards, or another store, begins
// with a seq of 1, and an edge changes an embedding without its event time.) No write replaces a row of a higher
// offset. The Progress of a partition is stored with the rows, in the same transaction or after them. A restart
// therefore finds a batch complete, or repeats it, which changes nothing.
//
// A tombstone deletes the node from all tables, whichever generation it names.
//
// Attributes of a node go to its rows in all tables. They come in records of their own, whose versions are their
// offsets, too. The topic has them behind every embedding, so that a row need not remember those that came before it.
package vectordb
