// Package pgvector keeps the vectors of the embeddings topic in PostgreSQL with the extension pgvector.
//
// A sink "items" is a view of that name over the table of one generation, items_g7_3, and the tables items_sink and
// items_sink_progress, which hold the catalog and the progress of each partition. Rows and progress change in one
// transaction. Each transaction shares a lock on the catalog's row and checks the session in it, which a process that
// opens the sink replaces: another process that still runs fails at its next transaction.
//
// The view's vectors are of the type vector without a dimension, so that a generation of another dimension can take the
// place of the one before and grants on the view stay. The planner sees through that cast: searches in the view use
// the table's HNSW index, which is built when the table is complete.
package pgvector
