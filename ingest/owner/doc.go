// Package owner says which pipeline may publish to a topic of embeddings, so that no second one publishes over its
// generations.
//
// Kafka keeps no properties of a user's with a topic, and a record on the topic itself would meet consumers that do not
// expect it. So the topic T has a log of its own beside it, T.owner, of one partition, to which pipelines write claims.
// A claim has a number, which is 1 for the first owner of a topic and one more than the present owner's for each later
// one. Of the claims with the highest number the one of the lowest offset holds. A pipeline writes its claim, reads the
// log back, and is the owner if its claim holds: of several that claim at once, exactly one does.
//
// T.owner is compacted and its keys are the ids of pipelines, so a claim is kept for as long as its pipeline writes no
// later one, and a pipeline whose claim holds writes none. What compaction removes has therefore a lower number than
// what it keeps, and never holds.
//
// A claim is of one topic, which its id tells from a later one of the same name: a topic that was deleted and created
// again has no owner. Brokers that give no ids (Kafka before 2.8) cannot tell.
//
// docs/format/embeddings.md has the records.
package owner
