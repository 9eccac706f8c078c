// Package sim simulates the data path of a pipeline from a seed, and checks the rules of docs/PROTOCOL.md.
//
// A simulation has the product's own shards, followers, compactors, collectors of orphans, checkpoints and leases.
// Around them everything is simulated: processes on machines, a consumer group, topics, an object store, disks and
// clocks. It runs in a bubble of testing/synctest, so an hour passes in milliseconds. The Kafka client is not part of
// it (it needs sockets), nor is training: a generation here is a cut, a file of embeddings per shard and a function
// of the text.
//
// # What happens to the product
//
// Calls to the store and the brokers take time, fail without effect, fail with effect (the reply is lost), and, for
// Create, take effect seconds after they have failed. Processes are killed between any two calls and start again with
// their disk as it was, as it was synced, or empty. They are frozen and continue as zombies, are cut off from
// everything, and have their clocks moved by hours. The group gives a shard to another process before the first one
// knows. Topics interleave, mirror records are repeated and reordered, and retention removes what no restart needs.
//
// # What is checked
//
//   - At every manifest: no gap, no offset that goes back, every object there, and as many records of each topic with
//     an outcome as lie below its offset. At every fourth, the newest rows are the graph of the records below the
//     offsets, the mirror of these records is durable, and as many of them have each outcome as an oracle says, but
//     for those whose outcome depends on how the topics of nodes and edges interleave.
//   - At every move of a log's boundary: it ascends, reaches neither the head nor a checkpoint that is kept, and blocks
//     have what it covers. What a worker takes for committed is what was committed first under that number.
//   - At every checkpoint document: its number follows, its files exist. At every removal: nothing that a manifest or
//     one of the two newest checkpoints names, unless it is merged; nothing above the head; no manifest beyond the
//     boundary; not the lease's highest number.
//   - At every write of a build: a holder that has lost its lease completes one write at most. At every take-over:
//     the holder before had released the lease or was silent for its time to live.
//   - At rest: the newest rows are the graph of everything sent, which an oracle computes from the definitions; a
//     scan of the log says the same; every generation can be read at its cut; the sink topic ends with the embedding
//     of each live node by the current generation, and with a tombstone for each deleted node that it had; each shard
//     opens on an empty disk at its newest checkpoint, and finds nothing to commit.
//
// # Replay
//
// What chance decides is a function of the seed and of the name of what is decided: process, call, key, how many
// times. No two calls end at the same time. So the order in which goroutines run does not matter, and a seed always
// gives the same simulation. One thing is not under control: how far the storage engine's own goroutines are when
// something else happens at the same time. The test measures how many seeds differ the second time.
//
//	go test ./cmd/internal/sim -run TestSimulation -seeds 1 -start 4711 -events
package sim
