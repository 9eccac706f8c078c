// Package publish turns the commit log into embeddings: a Follower reads the
// manifests of one shard as they are committed, encodes the texts of the rows
// they name with the current generation, and publishes the result.
//
// It reads nothing but the object store, so it runs beside the shard's worker
// or in another process alike. One follower per shard at a time keeps the
// order of a node's records.
//
// # Two at once
//
// A worker that stood still or was cut off may not know that another one has
// its shard, and records that were under way then can reach the topic after
// newer ones: nothing fences a producer of kafka-go. The cursor heals that. Every
// follower reads it before it publishes, and before it moves it. Who has
// sent something and finds the cursor beyond it sets it back to before that; who
// has the shard finds it there, at the latest at its next look, and publishes from
// there again, newest rows last. What remains is a worker that wakes, sends,
// and dies before it looks at the cursor.
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
