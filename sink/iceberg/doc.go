// Package iceberg keeps Apache Iceberg tables equal to the embeddings topic (Index) and to the newest rows of the
// commit log (Rows). An Index is a vectordb.Index: a vectordb.Follower hands it batches, and it commits many of them
// as one snapshot. The package knows no Kafka; the catalog is an interface, and the files are in a sink.Store.
//
// Rows are an Index of another kind: shards are its partitions, manifests its offsets, and a table that is filled from
// the beginning of the log is its generation.
//
// # Refs
//
// A generation that readers see is the branch main. One that is filled, or that the topic may go back to, is a branch
// of its own. The switch sets main to the head of such a branch, in the commit that also renames the older one, so no
// snapshot of main holds two generations. (One table for each generation and a view would need readers that know views
// of Iceberg: DuckDB and PyIceberg do not.)
//
// # Exactly once, in effect
//
// Every commit adds a snapshot to main, with rows or without, whose summary has the offsets of all partitions, and what
// the follower remembers besides. The tag giantstream_progress names it, so that no maintenance expires it. A commit is
// one request to the catalog. It requires that main, the tag and every branch it changes are as they were: of two
// processes, one gets the conflict and ends. To take the table over is a commit, too.
//
// A commit whose answer is lost is sent again unchanged, with the same snapshot ids. It succeeds, or conflicts with
// its own first attempt, which the tag then names.
//
// # Deletions
//
// A row that is replaced or deleted is named in a file of position deletes, which every reader knows: PyIceberg refuses
// tables with equality deletes. Positions come from Places, an index beside the table that is made from it when a
// process starts, and never trusted beyond that.
package iceberg
