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
// A node is marked dirty when its row changes, and only then: repetitions and
// statements that lose mark nothing.
//
// # Commit
//
// A window closes synchronously: nothing is applied between the first row
// built and the manifest created.
//
//  1. Rows of the marked nodes are built from the state in id order and written
//     as Parquet objects under names that no other session uses.
//  2. The state is synced and the mirror is flushed.
//  3. The manifest is created under the next sequence number, which must be free.
//     It is the commit. Whoever finds the number taken has been fenced
//     (ErrFenced) and stops: another worker owns the shard.
//  4. The window's marks are cleared.
//
// Objects that no manifest names are garbage.
//
// # Restart
//
// A worker reads on from the head manifest's offsets, not from where its state
// is. Three invariants make that right.
//
// Rows. Marks are written in one batch with the facts they announce and the
// offsets applied. When the state on disk holds nothing beyond the head's
// offsets, everything in it was committed by whoever wrote the manifests up to
// the head, so marks left in it are void: a crash fell between steps 3 and 4,
// or another worker went on. When it holds records beyond the head, its marks stay
// and join the next window: their records come again, but change nothing and so
// mark nothing. (Clearing the marks of windows up to the head would lose rows
// here: this worker may have applied more of a window than the one who took over
// has committed.)
//
// Mirror. The mirror of everything below a manifest's offsets is durable
// before the manifest. What lies above comes again after a restart, and a
// statement seen before repeats the mirror of every assertion that bears the
// version it stated, those it has taken back included. So there is no outbox;
// mirrored assertions may be repeated, and repetition changes nothing. For the
// same reason a manifest names the offsets this worker has consumed, not those
// that its state has applied.
//
// Rebuild. When the state is behind the head (lost disk, or a shard that was
// elsewhere for a while), the topics are read again from what the state has, and
// records below the head's offsets are applied without marks and without mirror:
// both were seen to. Until all topics are there nothing is committed, since rows
// would lack what is still to come. Order within each topic makes this enough: a
// family's replace marks and the assertions they kill come from one topic.
//
// The state also remembers the manifest it has last seen off and who wrote it.
// A commit log that is shorter, or has another manifest there, is another
// pipeline's, and the shard refuses to start.
package stream
