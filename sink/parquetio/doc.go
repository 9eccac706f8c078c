// Package parquetio is what sink/rows and sink/embedding share: typed Parquet objects in a store,
// written, verified and read one way.
//
// # Writing
//
// A Format names the artifact and estimates the size of a row. Put writes the rows to a temporary
// file, opens the finished file again and compares the row count in its footer with the number of
// rows written. Only then does it store the file. Row groups are closed at about 16 MiB of raw
// data, so that writers and readers need bounded memory for any number of rows. Lists, nested ones
// too, have the three-level encoding of the Parquet specification (list.element,
// https://github.com/apache/parquet-format/blob/master/LogicalTypes.md#lists). Compression is
// Zstandard at its fastest level unless the format says otherwise. Columns that only a configuration
// knows are a format's Further ones.
//
// # Reading
//
// Reading is the slow side, so a reader names the columns it wants. Only these are fetched and
// decoded, straight from their pages, a few hundred rows at a time. A Column (Scalar, List, Lists)
// binds a column to a field by a setter. ReadRows reads some rows, and of the file the pages with them.
//
// Strings and slices belong to the row, but neighbouring rows share their memory: keeping one row
// keeps a few hundred in memory.
//
// Reading fails with ErrSchema if a wanted column is missing or of another type, or if the file
// names another format or version. Other columns are ignored. Corrupt files give ErrCorrupt, never
// a panic. But the Parquet library allocates the lengths that page headers state, so a damaged file
// can take up to 2 GiB for a moment before the damage is noticed. Check the CRC-32C that manifests
// record before reading files that may be damaged.
package parquetio
