// Package repartition copies source topics that a pipeline cannot read as they are, with any number
// of partitions and any keys, into internal topics with a partition per shard, keyed by the node
// (edges: by the source). Run copies Routes until its context ends; Lag counts what is left.
//
// A consumer group per source topic shares the topic's partitions among the workers. Each record
// keeps its value, timestamp and headers. Its key becomes the id that the mapping finds in the
// value or in a key that is an object. Such an object is kept in a header, because it may name the far
// end of an edge or the item of an order. A record without a usable id keeps its own key, and so does a
// null value with a plain key; the shard that receives the copy dead-letters it like any other record.
//
// # At least once, in any order
//
// Offsets are committed after the copies are acknowledged, so a record may be copied twice, never
// not at all. A second copy changes nothing: each copy carries the partition and offset of its
// origin in a header, and Version derives the version of its facts from the origin and not from the
// copy's own offset. So the graph is still a function of the source records. Among equal event
// times the later offset of the origin wins, and among equal offsets the higher partition,
// regardless of how often and in which order records are copied.
//
// The group's offsets are not the only memory of how far a topic is copied: a person may move a group, and
// brokers forget offsets. Positions remember it too, less often. What a group has counts if the copier has
// committed it; else copying begins at the lower of the two, so nothing is left out.
//
// Versions of copies are above those of records that were sent to the internal topic directly, as a
// backfill does: of equal event times, the copy wins.
package repartition
