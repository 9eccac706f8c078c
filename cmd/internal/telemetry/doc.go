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
// A batch, a window and a publication are one thing for many records. Their parts are children of the span in the trace
// of the first record that is followed. The others have a span of the same name with a link to the first one's, which
// links to theirs.
//
// All of it hangs on hooks of the service. Without traces these are nil, and nothing is paid for them.
package telemetry
