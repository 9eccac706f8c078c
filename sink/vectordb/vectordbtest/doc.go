// Package vectordbtest tests a vectordb.Index: random topics with repeated publication, deletions and changes of the
// generation, in both directions, are followed by processes that are killed, lose replies, and live on after others
// have taken over. What readers see at the end must be what the topic holds after compaction, and never a mixture of
// generations on the way.
package vectordbtest
