package ingest

import (
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

// EventTimeHeader of an input record holds its event time, an RFC 3339 date-time, whatever the value
// and the timestamp say. ingest.max_future does not bound it: `giantstream override` answers a
// statement whose event time is wrong and far ahead with one of the same event time, and of equal
// event times the later offset wins.
const EventTimeHeader = "giantstream-event-time"

// OverrideOf returns the event time in the header of a record, in microseconds since 1970, nil if it has none.
func OverrideOf(m *kafka.Message) (*int64, error) {
	for _, h := range m.Headers {
		if h.Key != EventTimeHeader {
			continue
		}
		t, err := time.Parse(time.RFC3339Nano, string(h.Value))
		if err != nil {
			return nil, fmt.Errorf("header %s: %.60q is not an RFC 3339 date-time", EventTimeHeader, h.Value)
		}
		us := t.UnixMicro()
		return &us, nil
	}
	return nil, nil
}
