// Package publish turns the commit log into embeddings: a Follower reads the
// manifests of one shard as they are committed, encodes the texts of the rows
// they name with the current generation, and publishes the result.
//
// It reads nothing but the object store, so it runs beside the shard's worker
// or in another process alike. One follower per shard at a time keeps the
// order of a node's records; two at once (around a rebalance) do no lasting
// harm, since both publish the newest row last and records of the same row are
// identical.
//
// # Invariants
//
//   - The cursor (shards/<p>/published.json) is saved only after everything it
//     covers was acknowledged by the broker. A crash re-sends what came after
//     it: at-least-once delivery of identical records into a compacted topic.
//   - When a generation becomes current, the follower first publishes the
//     generation's own embeddings of the shard, leaving out nodes that changed
//     after the cut, then encodes everything committed after the cut. A
//     consumer therefore never sees a node's text go back in time.
//   - Deletions that were committed before the cut but not yet published are
//     published before the switch: the generation's embeddings hold live nodes
//     only and would otherwise hide them.
package publish
