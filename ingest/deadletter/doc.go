// Package deadletter keeps the records that could not be used, each with its origin, an error code,
// a sentence for people and its original bytes, on a topic of their own. List reads them, and
// Replay sends their records to the input topics again.
//
// A Writer publishes letters. They are safe when its Flush returns, and only then may a reader move
// past the records. Delivery is at least once: after a crash the same letter can come again. The
// Origin of a letter identifies it, and List leaves repetitions out.
//
// The format is described in docs/format/dead-letters.md.
package deadletter
