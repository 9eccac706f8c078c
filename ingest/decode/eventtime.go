package decode

import (
	"bytes"
	"strconv"
	"time"
)

// The years 1 to 9999, which every format in use here can write, in
// microseconds since 1970.
const (
	minTime = -62135596800 * 1e6
	maxTime = 253402300800*1e6 - 1
)

// eventTime returns the mapped event time; ok is false if there is none.
func (d *Decoder) eventTime() (us int64, ok bool, fault *Fault) {
	v, ok := d.one(slotTime)
	if !ok {
		return 0, false, nil
	}
	switch v.kind {
	case kindString:
		t, err := time.Parse(time.RFC3339Nano, d.text(v))
		if err != nil {
			return 0, false, faultf(BadEventTime, "%s is not an RFC 3339 date-time like 2006-01-02T15:04:05Z", quote(d.text(v)))
		}
		us = t.UnixMicro()
	case kindNumber:
		n, err := strconv.ParseInt(string(v.raw), 10, 64)
		if err != nil || bytes.ContainsAny(v.raw, ".eE") {
			return 0, false, faultf(BadEventTime, "%s is not an integer number of seconds, milli-, micro- or nanoseconds since 1970", quote(string(v.raw)))
		}
		us = fromInteger(n)
	default:
		return 0, false, faultf(BadEventTime, "the event time is %s", v.kind)
	}
	if us < minTime || us > maxTime {
		return 0, false, faultf(BadEventTime, "the event time is outside the years 1 to 9999")
	}
	return us, true, nil
}

// fromInteger reads an integer whose unit follows from its size. The seconds
// reach to the year 5138, the milliseconds from March 1973.
func fromInteger(n int64) int64 {
	switch size := max(n, -n); {
	case size < 1e11: // seconds
		return n * 1e6
	case size < 1e14: // milliseconds
		return n * 1e3
	case size < 1e17: // microseconds
		return n
	default: // nanoseconds
		return n / 1e3
	}
}

// micros is a record's timestamp as an event time; records without one are
// from 1970.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// Route finds what a value is keyed by and when it happened, for producing
// it: the id (source), and the mapped event time. ok is false when the value has no usable id;
// the time is zero when it has none.
func (d *Decoder) Route(v []byte) (id string, at time.Time, ok bool) {
	if len(v) == 0 || len(v) > d.limits.RecordBytes {
		return "", time.Time{}, false
	}
	d.scan.reset(v)
	if d.scanValue(v) != nil {
		return "", time.Time{}, false
	}
	if us, has, fault := d.eventTime(); has && fault == nil {
		at = time.UnixMicro(us)
	}
	id, fault := d.id(nil)
	return id, at, fault == nil
}
