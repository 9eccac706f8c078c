// Package feed reads the input of one shard: its partition of the nodes, edges
// and mirror topics, decoded and merged into stream batches.
//
//	f, err := feed.Open(ctx, cfg, shard, s.Next()) // offsets of the head manifest
//	defer f.Close()
//	batch, err := f.Next(ctx, time.Second)
//
// Each topic is fetched and decoded ahead by a goroutine of its own, a few MiB
// at most; the order inside a topic is kept, the topics mix freely (mutations
// commute, see stream.Mutation). What cannot be decoded becomes a dead letter,
// and a batch is handed out only after the letters of the records it covers
// are acknowledged. An error of Next is final: open a new feed at the offsets
// of the last commit.
//
// The broker being away is no error: the feed retries until its context ends
// and logs that it does. Offsets that the broker has deleted (retention) are
// passed over with an error in the log and in Metrics.Lost; offsets beyond
// the end of a topic mean that it is not the topic it was, and are an error.
package feed
