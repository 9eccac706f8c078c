// Package rowsort sorts and merges rows by node id in bounded memory. Sort makes runs, which lie in
// temporary files but for the last, and Merge makes one sequence of many runs, in several passes
// over temporary files if there are too many.
package rowsort
