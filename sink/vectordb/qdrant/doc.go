// Package qdrant keeps the vectors of the embeddings topic in Qdrant, by its HTTP interface.
//
// A sink "items" is an alias of that name for the collection of one generation, items_g7_3. The collection items_sink,
// which has no vectors, holds the catalog and the progress of each partition. A point's id is a hash of the node's id,
// which is in its payload.
//
// Qdrant has no transactions over points. A condition on the point's offset (update_filter, since Qdrant 1.16), which
// Qdrant checks together with the write, keeps a late write from replacing a newer point. A deleted node stays as a
// point without a vector, which no vector search finds, so that a late write of it meets a newer offset; such points
// go with their collection. Attributes are set by a filter on the offsets of the point and of its attributes.
package qdrant
