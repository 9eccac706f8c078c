// Package parquetio is what sink/rows and sink/embedding share: typed Parquet
// objects in a store, written, verified and read one way.
//
// # Writing
//
// A Format names the artifact and estimates the size of a row. Put writes
// the rows to a temporary file, opens the finished file again and compares the
// row count in its footer with the number of rows written, and only then stores it.
// Row groups are closed at about 16 MiB of raw data, so that writers and
// readers need bounded memory whatever the number of rows. Lists have the
// three-level encoding of the Parquet specification (list.element), also when nested
// (https://github.com/apache/parquet-format/blob/master/LogicalTypes.md#lists).
// Compression is Zstandard at its fastest level.
//
// # Reading
//
// Reading is the slow side, so a reader names the columns it wants, and only these
// are fetched and decoded, straight from their pages, a few hundred rows at a
// time. Columns are bound to fields by setters:
//
//	parquetio.Scalar("node_id", parquetio.String(), func(r *Row, v string) { r.NodeID = v })
//	parquetio.List("labels", parquetio.String(), func(r *Row, v []string) { r.Labels = v })
//
// Strings and slices belong to the row, though neighbouring rows share their
// memory: who keeps one row for long keeps a few hundred in memory.
//
// A file is refused in words if a wanted column is missing or of another type, or if it
// says that it is another format or version. Columns that nobody asked for are
// ignored. Corrupt files give ErrCorrupt, never a panic; but the Parquet
// library allocates the lengths that page headers state, so a damaged one can
// take up to 2 GiB for a moment before it is noticed. Check the CRC-32C that
// manifests record before reading files that may be damaged.
package parquetio
