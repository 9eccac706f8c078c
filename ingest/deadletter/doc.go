// Package deadletter keeps the records that could not be used, each with its
// origin, an error code, a sentence for people and its original bytes, on a
// topic of their own, from which they can be listed and replayed.
//
// A Writer publishes letters; its Flush returns when they are safe, and only
// then may the offsets of their records be passed. So delivery is at
// least once: after a crash the same letter can come again. Its identity is
// its Origin, by which List leaves repetitions out.
//
// The format is described in docs/format/dead-letters.md.
package deadletter
