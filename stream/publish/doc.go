// Package publish turns the commit log into embeddings. A Follower reads the manifests of one shard
// as they are committed, encodes the texts of their rows with the current generation, and publishes
// the result.
//
// A Follower reads only the store, so it runs beside the shard's worker or in another process. One
// follower per shard at a time keeps the order of a node's records.
//
// # Two followers of one shard
//
// A worker that was frozen or cut off may not know that another has its shard. Records that it was
// sending can then reach the topic after newer ones, because kafka-go's producer has no fencing. The
// cursor repairs that. Every follower reads the cursor before it publishes, and moves it only from
// where it has read it. A follower that has sent records and finds the cursor past the position from
// which it sent moves the cursor back to that position. The shard's owner finds it there, at its next
// step at the latest, and publishes from there again, newest rows last. What remains is a worker that
// continues after a freeze, sends, and dies before it looks at the cursor.
//
// # Invariants
//
//   - The cursor (shards/<p>/published.json) is saved only after the broker has acknowledged
//     everything that it covers, and may stay behind for as long as Options.SaveEvery says. A crash
//     sends again what came after the cursor: at-least-once delivery of identical records into a
//     compacted topic.
//   - When a generation becomes current, the follower first publishes the generation's own
//     embeddings of the shard, leaving out nodes that changed after the cut. Then it encodes
//     everything committed after the cut. So no consumer sees a node's text go back in time.
//   - The cursor names the newest manifest of which the topic may have rows. Up to there, a row that a newer one
//     supersedes is not published: see newest.
//   - A generation that is not to be served any more (damaged, or withdrawn by people) is replaced in the same way by
//     the older one that is: as a whole.
//   - Before the first record of another generation is sent, the cursor says that the topic is mixed. A generation
//     that is withdrawn halfway thus leaves no vectors: the follower that finds the mark publishes all nodes again.
//   - Behind each embedding that is sent comes a record of the node's attributes, if the model names any. A change
//     of attributes alone sends such a record and encodes nothing. A switch sends those of the cut behind the
//     generation's embeddings, and what came after the cut follows. The cursor names the attributes that the topic may
//     have; others in the model publish the generation again.
//   - The cursor names the format of the vectors. A follower that is to publish another one, because the
//     configuration has changed, publishes the current generation again, so that no mixture stays.
//   - Deletions that were committed before the cut but not yet published are published before the
//     switch: the generation's embeddings hold live nodes only and would otherwise hide them.
//
// docs/PROTOCOL.md, "Publication", shows where this stands in the whole.
package publish
