// Package sink is where results go: an object store for Parquet batches,
// manifests and artifacts, and (in sink/embedding) the topic that carries
// embeddings.
//
// # The store
//
// Store is a flat namespace of immutable byte strings. It asks of a backend
// only what both a directory and S3 can give:
//
//   - Put replaces an object whole: a reader sees the old bytes or the new
//     ones, never a mixture.
//   - Create writes an object only if its key is free. Everything that must
//     happen exactly once (commits, leases, generation numbers) is a Create;
//     Probe proves at start-up that the backend keeps that promise.
//   - List yields keys in byte order, so zero-padded numbers sort as numbers.
//
// Four packages implement it or choose an implementation: sink/dirstore (a
// local directory), sink/s3store (S3 and what speaks its protocol),
// sink/memstore (memory, with injected failures, for tests) and sink/stores
// (opens any of the first two from a URL). sink/storetest is the suite that
// all of them pass.
//
// # A lost response is not a lost race
//
// A client that sends a Create, loses the response and sends it again is told
// that the object exists: its own. Implementations therefore compare: when the
// key is taken by exactly the bytes that the caller wanted to write, Create
// has succeeded (see SettleCreate). Callers that race each other put something
// of their own, a writer id, into the data, so that two of them never write
// the same bytes.
//
// # Files
//
// sink/rows and sink/embedding write Parquet through sink/parquetio, which
// checks the row count of every finished file before it is stored.
// The layout of the store is in docs/format/store.md. What is on its way there
// passes through files of sink/tempfile, which leave nothing behind.
package sink
