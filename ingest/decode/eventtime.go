package decode

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// The years 1 to 9999, which all our formats can represent, in microseconds since 1970.
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
	us, fault = d.microsOf(v)
	return us, fault == nil, fault
}

// microsOf reads a time, in microseconds since 1970.
func (d *Decoder) microsOf(v value) (us int64, fault *Fault) {
	switch v.kind {
	case kindString:
		text := d.text(v)
		t, ok := parseTime(text)
		if n, err := strconv.ParseUint(text, 10, 63); err == nil && len(text) >= len("20060102") {
			t, ok = time.UnixMicro(fromInteger(int64(n))), true // BigQuery's JSON has integers in quotes
		}
		if !ok {
			return 0, faultf(BadEventTime, "%s is not a date-time like 2006-01-02T15:04:05Z, 2006-01-02 15:04:05 "+
				"-0700 or 02.01.2006 15:04, or a date like 2006-01-02", quote(text))
		}
		us = t.UnixMicro()
	case kindNumber:
		n, err := strconv.ParseInt(string(integral(v.raw)), 10, 64)
		if err != nil || n == math.MinInt64 { // which is how pandas writes that there is no time
			return 0, faultf(BadEventTime, "%s is not an integer number of seconds, milli-, micro- or "+
				"nanoseconds since 1970", quote(string(v.raw)))
		}
		us = fromInteger(n)
	default:
		return 0, faultf(BadEventTime, "the event time is %s", v.kind)
	}
	if us < minTime || us > maxTime {
		return 0, faultf(BadEventTime, "the event time is outside the years 1 to 9999")
	}
	return us, nil
}

// zones are how an offset from UTC may be written. A date-time without one is taken for UTC, as exports of databases
// and shops mean it. ISO 8601 has no space before it; Ruby and Shopify write one, BigQuery
// one and the zone's name.
var zones = [...]string{"Z07:00", "", " -0700", "Z0700", "Z07", " UTC"}

// parseTime reads a date, or a date-time of ISO 8601 with any fraction of a second, or without seconds; a space may
// stand for the T. A date with dots is day, month and year, which nobody writes in another order; with slashes it would
// be either.
func parseTime(s string) (t time.Time, ok bool) {
	if t, err := time.Parse(time.RFC3339, s); err == nil { // which has a path of its own there
		return t, true
	}
	if len(s) >= len(time.DateOnly) && s[2] == '.' && s[5] == '.' {
		s = s[6:10] + "-" + s[3:5] + "-" + s[:2] + s[10:]
	}
	if day := strings.TrimSuffix(s, "Z"); len(day) == len(time.DateOnly) { // Debezium's IsoDate ends in Z
		s = day
	}
	if len(s) == len(time.DateOnly) {
		t, err := time.Parse(time.DateOnly, s)
		return t, err == nil
	}
	if len(s) <= len(time.DateOnly) {
		return t, false
	}
	day := time.DateOnly + "T"
	if s[len(time.DateOnly)] == ' ' {
		day = time.DateOnly + " "
	}
	for _, clock := range [...]string{time.TimeOnly, "15:04"} {
		for _, zone := range zones {
			if t, err := time.Parse(day+clock+zone, s); err == nil {
				return t, true
			}
		}
	}
	return t, false
}

// fromInteger converts an integer above math.MinInt64 and infers its unit from its size. Seconds reach to the year
// 5138; milliseconds begin in March 1973. What is a date when its digits are read as year, month and day is that, as in
// warehouses, and no time in August or September 1970.
func fromInteger(n int64) int64 {
	if 1900_00_00 < n && n < 2200_00_00 {
		if t, err := time.Parse("20060102", strconv.FormatInt(n, 10)); err == nil {
			return t.UnixMicro()
		}
	}
	switch size := max(n, -n); {
	case size < 1e11: // seconds
		return n * 1e6
	case size < 1e14: // milliseconds
		return n * 1e3
	case size < 1e17: // microseconds
		return n
	case n%1e3 < 0: // nanoseconds, rounded down like those of a date-time
		return n/1e3 - 1
	default:
		return n / 1e3
	}
}

// micros converts a record's timestamp to an event time; a record without a timestamp is from 1970. Kafka's timestamps
// reach further than our formats, and than microseconds in 64 bits: what a producer states in another unit would come
// out as any time at all.
func micros(t time.Time) int64 {
	switch s := t.Unix(); {
	case t.IsZero():
		return 0
	case s > int64(maxTime)/1e6:
		return maxTime
	case s < int64(minTime)/1e6:
		return minTime
	}
	return t.UnixMicro()
}

// Route returns what a producer of the value needs: the id (edges: of the source) to key it by, and
// the mapped event time, which is zero if the value has none. ok is false if the value has no
// usable id.
func (d *Decoder) Route(v []byte) (id string, at time.Time, ok bool) {
	if len(v) == 0 || len(v) > d.limits.RecordBytes {
		return "", time.Time{}, false
	}
	d.wasGone = false
	if d.changes != nil {
		c, fault := d.changes.read(v)
		if fault != nil || c.row == nil {
			return "", time.Time{}, false
		}
		d.types.use(c.schema, d.root, len(d.scan.captured))
		v, at, d.wasGone = c.row, d.timeOf(&c, time.Time{}), c.deletes
	}
	if d.scanRow(v) != nil {
		return "", time.Time{}, false
	}
	d.tally.count(d, 1)
	if us, has, fault := d.eventTime(); has && fault == nil && (!d.wasGone || at.UnixMicro() < us) {
		at = time.UnixMicro(us)
	}
	id, fault := d.id(nil)
	return id, at, fault == nil
}
