// Package commitlog is what a shard leaves in the store, and how others read it.
//
// A Manifest commits one window of a shard: its row objects, and the input offsets that they cover.
// Manifests are numbered 1, 2, 3, … without gaps, created once, and never changed. The newest one
// is the head (Head). Where manifest n exists, window n is committed, and nothing else commits it. Each
// manifest names the digest of the one before it, and carries a checksum of itself; objects are compared with
// the checksums that name them before their first row is read. Audit checks all of a shard.
//
//   - Manifests reads the log manifest by manifest, Segments in the largest pieces there are.
//   - A Cut is one manifest number per shard. What a cut shows never changes: Cut.Newest and
//     Cut.Facts yield the newest row of each node as of the cut.
//   - GraphHasher computes the fingerprint of a graph, by which runs are compared.
//   - Published is the cursor of the embeddings; Identity says which pipeline a store belongs to.
//   - WriteObjects, RowKey and Creator are for the shard, which writes the log.
//     Fencing is its matter: creating a manifest fails if the number is taken.
//
// # Compaction
//
// A Compactor merges the rows of blocks of manifests, 64 at a time and in three levels, into few
// objects. Blocks lie at fixed places, so two of one level never overlap, and a block's document is
// created under the condition that there is none. A merged block has the newest row of each node
// that has one in the block, in the order of the windows, and says how many are left of each window.
// So readers see the same rows, of the same manifests, in the same order; only rows that a later
// manifest of the block supersedes are gone. A reader uses the
// largest block that fits and, where there is none, the manifests' own objects.
//
// Merged parts are removed after a grace for their readers, if the block ends at or before the
// oldest cut that must stay readable: a reader at that cut or a newer one never looks below the
// block.
//
// # Removal of manifests
//
// Fold removes manifests that blocks replace: it moves the Boundary past them, and then deletes them. A removed number
// is free, so a late worker may create its manifest there. So nobody believes a manifest before a look at the boundary
// that comes after: a worker calls CheckCreated once it has created one, readers use ReadCommitted, Head, Next and
// Segments, which look. ReadManifest and Manifests are for those who check otherwise, and for people.
//
// # Orphans
//
// Only manifest n can name row objects of window n; a folded block repeats the names.
// So once manifest n exists, an object of window
// n that it does not name never will be named, and Orphans removes it. Objects of windows above the
// head are left alone.
//
// docs/PROTOCOL.md has the rules. Formats: docs/format/manifest.md.
package commitlog
