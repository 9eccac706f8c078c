// Package status reads how a pipeline is: its shards, offsets, lag, generations and dead letters, as the store and
// the brokers have them, and what the store costs.
//
// [Read] reads the store alone. [ReadLetters] and [LagOf] add what brokers know, and [Status.Complete] looks at the
// newest objects. [Live] is the status as a running service reads it again and again for its page.
package status
