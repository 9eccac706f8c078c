// Package milvus keeps the vectors of the embeddings topic in Milvus, by its gRPC interface.
//
// A sink "items" is an alias of that name for the collection of one generation, items_g7_3. The collection items_sink
// holds the catalog and the progress of each partition.
//
// Milvus has neither transactions nor conditional writes. Each process writes under a name of its own instead: an
// alias for each collection, items_g7_3_w_TOKEN. A process that takes the sink over drops the aliases of all others,
// so that what they still write finds no collection. A process also changes to new aliases after a write whose
// outcome it does not know, before it writes again: the lost write cannot arrive behind later ones. What is left is a
// write that Milvus has already begun to carry out when its alias is dropped.
//
// A process is the only writer, so it reads the offsets of a batch's nodes before it writes them, and keeps rows of a
// higher offset. A deleted node has no row, and so no offset: while an interrupted batch is repeated, a node that it
// deletes may reappear for a moment.
//
// Attributes are in Milvus's dynamic field, which needs no change of a collection for another attribute. Milvus changes
// no part of a row, so a change of attributes writes the row again with the vector that it has.
package milvus
