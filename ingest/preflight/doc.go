// Package preflight checks a pipeline's topics before anything is consumed: whether they keep what
// the pipeline needs, and whether their records are in the partitions where the shards look for
// them. That the inputs have one partition per shard is checked earlier, where topics are created
// (client.EnsureTopics).
//
// Check returns an error, which says what to do, for what certainly loses facts or would
// dead-letter most records. It returns a warning for what may be intended: a topic with a
// retention, a few records in the wrong partition. What cannot be checked, for lack of a right or
// because a registry is down, is a warning too.
package preflight
