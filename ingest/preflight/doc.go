// Package preflight looks at a pipeline's topics before anything is consumed:
// whether they keep what the pipeline needs, and whether their records are
// where the shards look for them.
//
//	warnings, err := preflight.Check(ctx, preflight.Options{…})
//
// That the inputs have one partition per shard is looked at earlier, where
// topics are created (client.EnsureTopics).
//
// What loses facts for certain, or would dead-letter most records, is an
// error that says what to do. What may be as it was meant is a warning: a
// topic with a retention, a few records in the wrong partition. What cannot be
// looked at, for lack of a right or because a registry is down, is a warning too.
package preflight
