// Package group spreads the shards of a pipeline over its workers, by a Kafka
// consumer group.
//
// Shard p is partition p of every input topic, so a worker must get the same
// partition numbers of all of them, which none of the usual balancers promises.
// Balancer does: all topics together, the numbers spread evenly, and as
// few shards moved as evenness allows, because moving one costs a restore of its state.
//
// Run joins the group and, for every generation of it, runs a handler per
// assigned shard. When the group rebalances, the handlers' context ends and they
// are waited for before the next generation begins. That is a courtesy, not the
// protection: a worker that was thought dead may go on for a while
// beside its successor. What keeps the two apart is the shard's commit log,
// where only one of them can write the next manifest. For the same reason
// the offsets committed here are a hint for people and tools who look at the group's lag.
package group
