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
// Documents are written through an alias of the index, items_g7_3_W, and only so: a late write to an index that was
// dropped would otherwise make it again. OpenSearch heeds require_alias for documents, and not for deletions alone,
// which make an index of the alias's name. Names of indexes are in lower case, and those of aliases need not be: a
// deletion that is late is refused.
package opensearch
