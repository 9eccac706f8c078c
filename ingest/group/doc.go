// Package group spreads the shards of a pipeline over its workers, by a Kafka consumer group.
//
// Shard p is partition p of every input topic, so a worker must get the same partition numbers of
// all of them, which none of the usual balancers promises. The balancer of this package treats all
// topics together and spreads the partition numbers evenly. It moves as few shards as an even
// spread allows, because moving a shard costs a restore of its state. A shard that nobody has goes to
// a member with a copy of its state, if there is one.
//
// Run joins the group and, for every generation of the group, runs a handler per assigned shard.
// When the group rebalances, the context of the handlers ends, and Run waits for them before it
// joins the next generation. That wait is a courtesy, not the protection: a worker that the group
// has given up may run beside its successor for a while. The shard's commit log keeps the two
// apart, because only one of them can write the next manifest. For the same reason the offsets
// committed here are a hint for people and tools that look at the group's lag.
package group
