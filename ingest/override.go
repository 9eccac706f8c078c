package ingest

// EventTimeHeader of an input record holds its event time, an RFC 3339 date-time, whatever the value
// and the timestamp say. ingest.max_future does not bound it: `giantstream override` answers a
// statement whose event time is wrong and far ahead with one of the same event time, and of equal
// event times the later offset wins.
const EventTimeHeader = "giantstream-event-time"
