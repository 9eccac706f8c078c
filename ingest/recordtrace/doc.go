// Package recordtrace follows single records in OpenTelemetry traces: which ones, and what their headers say.
//
// A producer that traces puts the header traceparent (W3C Trace Context) on its records. Tracer.Begin takes it up:
// the record's span is a child of the producer's. A record without the header begins a trace of its own if it is
// drawn. Header passes a span on to what becomes of the record (a mirror record, a dead letter, an embedding), so
// that its reader continues the trace.
//
// Most records are not followed. Begin then returns nil and allocates nothing, and a feed without a Tracer does not
// even call it.
package recordtrace
