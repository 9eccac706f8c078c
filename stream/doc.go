// Package stream turns mutations into committed batches, exactly once: graph
// state, windows, rows, the commit log, restart, and cuts of the log for those
// who read it.
//
//	s, err := stream.OpenShard(ctx, opts)      // one worker per shard
//	feed := startFeedAt(s.Next())              // offsets per topic
//	err = s.Run(ctx, feed)                     // until ctx ends or ErrFenced
//	err = s.Close()
//
//	cut, err := stream.CurrentCut(ctx, store, shards)
//	for row, err := range cut.Newest(ctx, store, shard) { … }
//
// # Facts
//
// The state of a shard is a function of the set of mutations applied to it.
// Their order, repetitions, batches and windows make no difference. For each
// node:
//
//   - PutNode and DeleteNode are one last-writer-wins register.
//   - An edge s→d has two registers of assertions, one per family: what node
//     records with inlined edges say (Version.Rank 0), and what edge records say
//     (Rank 1). The newer of the two is the effective assertion, whichever
//     family it is of: an edge record can take back an inlined edge, and the
//     next node record can restate it.
//   - SetEdges, ClearEdges and PutNode.HasEdges leave a replace mark on their
//     source, per family: all assertions of that family older than the mark count
//     as taken back at the mark's version, unless the list restates them. That
//     holds for those that arrive after the mark, too. The other family is
//     untouched: a product's record does not erase what the edges topic says.
//   - In an undirected graph the effective assertion s→d also goes to d's shard
//     (the mirror), with its version. There it is one more register; d's labels are
//     the far ends of which either register says "live". Taking back s→d leaves
//     d→s alone.
//   - An edge of a node to itself says nothing and is dropped.
//
// A node has a row once some PutNode of it was applied. A node that is only
// the far end of edges has none, and a DeleteNode that comes before any PutNode
// is remembered but makes none. A deleted node keeps its edges, which dangle;
// its row says deleted, as of the deletion. The event time of any other row is
// that of the newest statement about the node or about one of its links.
//
// A row is due when it changes, and only then: repetitions and statements that
// lose cause none.
//
// # State
//
// What a window changes is kept in memory until its manifest exists, and is then
// written to the files of the state in one batch, in key order. So the rows of a
// window are built without reading its facts back, and what changes twice is
// written once. The shards of a process share a budget for that (Cache). When half
// of it is taken Run commits windows early. A window that cannot be committed yet,
// or has grown beyond the budget, is written before its manifest: facts, marks and
// applied offsets in one batch, and it goes on being gathered. No row shows which way
// its window went. The engine keeps no log: what it had not flushed when the
// process ended, at most what its memtables hold or a minute of changes, is read again, like any
// other state that is behind the head.
//
// # Commit
//
// A window closes synchronously: nothing is applied between the first row
// built and the manifest created.
//
//  1. Rows of the marked nodes are built from the state in id order and written
//     as Parquet objects under names that no other session uses.
//  2. The mirror is flushed.
//  3. The manifest is created under the next sequence number, which must be free.
//     It is the commit. Whoever finds the number taken has been fenced
//     (ErrFenced) and stops: another worker owns the shard.
//  4. The state is written, and the window's marks are cleared.
//
// Objects that no manifest names are garbage; Orphans removes them, and says
// why it may.
//
// # Restart
//
// A worker reads on from the head manifest's offsets, whatever its state on disk
// holds: less than the head covers (lost disk, or a shard that was elsewhere for a
// while), more (it was killed between two commits), or less of one topic and
// more of another. What makes that right:
//
// Rows hold exactly what their manifest's offsets cover. Nothing is committed
// until every topic has been consumed both up to the head's offsets and up to
// what the state holds already; from there on the state is the graph of the
// records consumed, no more and no less. Hence, by induction, the newest
// committed rows are the graph at the head's offsets.
//
// Marks tell what separates the state from those rows. They are written in one batch
// with the facts and the applied offsets, wherever those are written before their manifest.
//
//   - If the state holds nothing beyond the head's offsets, everything in it is
//     in committed rows, by whomever, and all marks are void. (So a crash between
//     steps 3 and 4 does no harm, nor does it matter who went on.)
//   - If it does, its marks stay: the records that caused them come again, but
//     change nothing and mark nothing. Clearing them because the head has moved
//     on would lose rows, as the worker that took over may have committed less
//     than this one had applied.
//   - Records below the head's offsets are applied without marks.
//   - "This did not change the row" is a statement about the order in which this
//     worker saw things. An edge that arrives before its node changes no row, nor
//     does one that the far end has asserted already; another worker may
//     have seen it otherwise and committed that. So while the state lacks some of
//     what the head covers every link that changes marks its owner, and otherwise
//     a link that changes without changing the row leaves a mark of its own
//     kind (suspect), which counts only if another worker has committed since.
//
// The mirror of everything below a manifest's offsets is durable before the
// manifest. What lies above comes again after a restart, and a statement that was
// seen before repeats the mirror of every assertion that bears the version it
// stated, those it has taken back included. So there is no outbox. Mirrored
// assertions may be repeated; repetition changes nothing. Records below the head's
// offsets are applied without mirror. Order within each topic makes that
// enough: a family's replace marks and the assertions they kill come from one
// topic, so none is applied before the other for the first time.
//
// The state also remembers the manifest it has last seen off and who wrote it.
// A commit log that is shorter, or has another manifest there, is another
// pipeline's, and the shard refuses to start. So it does when the state needs
// records that their topic no longer holds (ErrLogIncomplete): input topics keep their
// records from the newest checkpoint on, or are compacted in a way that last-writer-wins
// does not notice.
//
// # Checkpoints
//
// A shard copies its state to the store now and then: a snapshot of hard links
// on the local disk, taken between two batches, whose files are uploaded in the
// background. Tables of the storage engine never change, so a checkpoint uploads
// those that the ones before it do not have. A document names all files and is
// created last.
//
// The state is copied only when it stands exactly at the head manifest, with
// nothing applied beyond the head's offsets and no row due. To take up such a copy
// is the simplest case of a restart: a state that holds less than the log covers.
// When a shard is opened, the newest checkpoint that is whole replaces the local
// state if that lacks, of any topic, a record that the checkpoint has. It is
// downloaded beside the state, opened, compared with its document and the commit
// log, and only then renamed into place.
//
// Documents have consecutive numbers, and are created under the condition that
// theirs is free. The newest two, M and M-1, are kept. Every file has in its name
// the number of the document that it was uploaded for, and a session id. Two rules make
// it safe to upload and to collect at any time, in any number of processes, with
// zombies that were halted for days between any two of their calls:
//
//   - Document M+1 names only files that M or M-1 name, or that its own session
//     uploaded for a document numbered M or higher.
//   - Who has seen M as the newest removes documents below M-1, and files
//     numbered below M that neither M nor M-1 names.
//
// A file removed under the second rule is named by no document from M-1 on, by
// induction over the first: it is neither in the two that came before, nor numbered
// high enough. And a document that was not created on top of the newest is not
// created at all, since its number is taken; should that have been collected
// meanwhile, what is created there is older than the two that are kept, and
// whoever restores looks at those first and verifies every file.
// Documents ascend in their manifests, too: none is created that is not newer
// than M.
//
// # Compaction
//
// Short windows make small objects, and a log of many of them takes long to
// read. A Compactor merges the rows of blocks of manifests: 64 of them, 64 blocks
// of those, and 64 of those again. Blocks lie at fixed places, so two of one level
// never overlap, and a block's document is created under the condition that there is
// none. A merged block has the newest row of each node that the block has, in the
// order of the windows, and says how many are left of each window. So readers
// (Segments, Cut) see the same rows, of the same manifests, in the same order.
// Manifests stay, and stay the truth; whoever reads uses the largest block that
// fits and, where there is none, the manifests' own objects.
//
// What was merged is removed after a grace, for who is reading it, if the block
// ends at or before the oldest cut that must stay readable. A reader at that cut or a
// newer one finds the block fit, and never looks below it. An object that its
// block's document does not name never will be named, and goes at once.
package stream
