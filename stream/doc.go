// Package stream turns mutations into committed batches, exactly once: graph state,
// windows, rows, the commit log, restart.
package stream
