// Package milvus keeps the vectors of the embeddings topic in Milvus, by its gRPC interface.
//
// A sink "items" is an alias of that name for the collection of one generation, items_g7_3. The collection items_sink
// holds the catalog and the progress of each partition.
//
// Milvus has neither transactions nor conditional writes. What takes their place is the name that a process writes to:
// an alias of its own for each collection, items_g7_3_w_TOKEN. A process that takes the sink over drops the aliases of
// all others, so that what they still write finds no collection. A process also changes to new aliases after a write
// whose outcome it does not know, before it writes again: the lost write cannot arrive behind later ones. What is left
// is a write that Milvus has already begun to carry out when its alias is dropped.
//
// With one writer, it is enough to read the offsets of a batch's nodes before they are written. A row of a higher
// offset stays. A node that is deleted has no row, and so no offset: while a batch that was interrupted is repeated, a
// node that it deletes may be back for a moment.
package milvus
