// Package feed reads the input of one shard: its partition of the nodes, edges and mirror topics,
// decoded and merged into batches of mutations.
//
// Open starts to read at the offsets of the shard's newest manifest; Next returns a batch. A
// goroutine per topic fetches and decodes ahead, a few MiB at most. The order inside a topic is
// kept; the topics interleave freely, because mutations commute (see mutation.Mutation). A record
// that cannot be decoded becomes a dead letter, and Next returns a batch only after the letters of
// the records it covers are acknowledged. An error of Next is final: open a new feed at the offsets
// of the last commit.
//
// A broker that is away is no error: the feed logs and retries until its context ends. Offsets that
// the broker has deleted (retention) are skipped, with an error in the log and in Metrics.Lost. An
// offset beyond the end of a topic means that the topic is not the one that was consumed, and is an
// error (client.ErrTruncated).
package feed
