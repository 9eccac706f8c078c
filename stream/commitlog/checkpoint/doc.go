// Package checkpoint has the documents of checkpoints, which are copies of a shard's state in the
// store. The shard makes and restores them; commitlog.Orphans removes what is Superfluous.
//
// Documents have consecutive numbers, and each is created under the condition that its number is
// free. The newest two, M and M-1, are kept. The name of every file has the number of the document
// that the file was uploaded for. Two rules make it safe to upload and to collect at any time, in
// any number of processes, even ones that are halted for days between two calls:
//
//   - Document M+1 names only files that M or M-1 name, or that its own session uploaded for a
//     document numbered M or higher.
//   - A collector that has seen M as the newest removes documents below M-1, and those files
//     numbered below M that neither M nor M-1 names.
//
// docs/PROTOCOL.md proves these rules. Format: docs/format/state.md.
package checkpoint
