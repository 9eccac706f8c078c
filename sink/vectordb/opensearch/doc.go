// Package opensearch keeps the vectors of the embeddings topic in OpenSearch, with its k-NN plugin.
//
// A sink "items" is an alias of that name for the index of one generation, items_g7_3. The index items_sink holds the
// catalog and the progress of each partition. The id of a document is the node's id. A node without a vector has no
// document.
//
// The version of a document is the record's offset, by OpenSearch's external versions, which the server compares as it
// writes: neither a late write nor a repeated one replaces a newer document. The version of a deleted document is kept
// for index.gc_deletes, which is a day here, so that a write has to be later than that to bring it back.
//
// A change of attributes writes a document back as it was read, with other attributes, if nobody has written it since
// (if_seq_no). OpenSearch then adds 1 to its version. Versions stay below the offset of the node's next embedding,
// because each such write is of a record behind the embedding and of one more offset.
//
// The sink writes documents only through an alias of the index, items_g7_3_W: a late write to a dropped index would
// otherwise create it again. OpenSearch heeds require_alias for documents, but a request of deletions alone creates
// an index of the alias's name. An index's name must be in lower case and an alias's need not be, so OpenSearch
// refuses a late deletion.
package opensearch
