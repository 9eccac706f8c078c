// Package mutation is the vocabulary that input and shards share: a Mutation is one change of the
// graph, a Version orders the statements about one fact, and a Batch is what a shard applies at
// once. Decoders make mutations, the mirror topic carries some of them, and shards apply them.
//
// A set of mutations gives the same graph in any order, with any repetitions: every fact carries
// the Version of the record that stated it, and the highest version wins. Page:
// docs/PROTOCOL.md, "Facts and versions".
package mutation
