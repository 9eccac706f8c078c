// Package sink is where results go: an object store for Parquet batches, manifests and artifacts.
//
// # The store
//
// Store is a flat namespace of immutable byte strings. It requires of a backend only what both a
// directory and S3 can give:
//
//   - Put replaces an object whole: a reader sees the old bytes or the new ones, never a mixture.
//   - Create writes an object only if its key is free. Everything that must happen exactly once
//     (commits, leases, generation numbers) is a Create. Probe proves at start-up that the backend
//     keeps this promise.
//   - List yields keys in byte order, so zero-padded numbers sort as numbers.
//
// Three packages implement Store: sink/dirstore (a local directory), sink/s3store (S3 and servers
// that speak its protocol) and sink/memstore (memory, with injected failures, for tests).
// All three pass the suite sink/storetest.
//
// # A lost response is not a lost race
//
// A client that loses the response to a Create sends the Create again. The store then answers that
// the object exists, although the client itself has created it. Implementations therefore compare:
// when the key holds exactly the bytes that the caller wanted to write, Create has succeeded (see
// ConfirmCreate). Callers that race each other put a writer id into the data, so that no two of
// them write the same bytes.
//
// # Files
//
// sink/rows and sink/embedding write Parquet through sink/parquetio, which checks the row count of
// every finished file before the file is stored. docs/format/store.md describes the layout of the
// store.
package sink
