// Package status reads a pipeline's state from its store and brokers: shards, offsets, lag, generations and dead
// letters; and estimates what the store costs.
//
// [Read] reads the store alone. [ReadLetters] and [LagOf] add what brokers know, and [Status.Complete] looks at the
// newest objects. [Live] is the status that a running service refreshes for its page.
package status
