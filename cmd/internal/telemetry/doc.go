// Package telemetry sends OpenTelemetry traces of a service: single records from their fetch to the publication of the
// embeddings that they have changed, and builds of generations by stage.
//
// Which records are followed is decided in ingest/recordtrace. A record's trace has the spans
//
//	process TOPIC      from the fetch until its window is committed
//	  receive TOPIC    the broker's answer
//	  decode
//	  apply            the batch that it came with
//	  commit           the window: rows, requests to the store, the mirror's flush, the manifest
//	publish TOPIC      the embeddings of its nodes: encode, send
//
// A batch, a window and a publication each serve many records. Their parts are children of one span, in the trace of
// the first followed record. Each other followed record has a span of the same name; the two spans link to each other.
//
// The service calls this package through hooks. Without traces the hooks are nil and cost nothing.
package telemetry
