// Package rekey makes topics that a pipeline cannot use as they are into ones
// that it can: of any number of partitions, keyed by anything, into internal
// topics with a partition per shard, keyed by the node (edges: by the source).
//
//	err := rekey.Run(ctx, rekey.Options{…, Routes: []rekey.Route{{From: "products", To: "shop.nodes.keyed", …}}})
//
// A consumer group per source topic shares its partitions among the workers.
// Each record is copied as it is, value, timestamp and headers, with the id that
// the mapping finds as its key; one without a usable id keeps its key, and the
// shard that it comes to dead-letters it like any other. Null values keep
// theirs, too: it is all they have.
//
// # Once, and in which order
//
// Offsets are committed after the copies are acknowledged, so a record may be
// copied twice, never not at all. Twice does no harm, because a copy carries the
// partition and offset of its origin in a header, and Version makes the version
// of its facts out of these and not of the copy's own offset. So the graph is
// still a function of the source records: among equal event times the later
// offset of the origin wins, and among equal offsets the higher partition, no
// matter how often, in which order or by whom records were copied.
//
// Versions of copies are above those of records that were sent to the internal
// topic directly, as a backfill does: of equal event times, the copy wins. They
// are also above every offset of a topic, so a shard that starts on an older
// state takes the copies that it has committed already for new ones, and
// writes their rows once more. That costs rows, and changes nothing.
package rekey
