// Package rows reads and writes instance-to-label rows as Parquet.
package rows
