package decode_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"giantstream/ingest/decode"
)

// TestFutureEventTimes: what lies further ahead of the clock than the bound is a fault, wherever its
// event time comes from; an override is not.
func TestFutureEventTimes(t *testing.T) {
	clock := func() time.Time { return stamp }
	n := nodes(t, decode.NodeMapping{ID: "id", EventTime: "at"})
	n.LimitFuture(24*time.Hour, clock)
	e := edges(t, decode.EdgeMapping{Src: "src", Dst: "dst", EventTime: "at"})
	e.LimitFuture(24*time.Hour, clock)
	for ahead, refused := range map[time.Duration]bool{
		-time.Hour: false, 24 * time.Hour: false, 24*time.Hour + time.Second: true, 8000 * time.Hour: true,
	} {
		at := stamp.Add(ahead)
		mapped := fmt.Sprintf(`{"id":"a","src":"a","dst":"b","at":%q}`, at.Format(time.RFC3339))
		null := record("a", "")
		null.Value, null.Time = nil, at
		stamped := record("a", `{"id":"a","src":"a","dst":"b"}`)
		stamped.Time = at
		for name, r := range map[string]decode.Record{"mapped": record("", mapped), "stamped": stamped, "null": null} {
			for _, d := range []*decode.Decoder{n, e} {
				got, fault := d.Decode(r, nil)
				if refused != (fault != nil) || refused == (len(got) > 0) || refused && fault.Code != decode.FutureTime {
					t.Errorf("%s, %v ahead: %d mutations, %v", name, ahead, len(got), fault)
				}
			}
		}
	}
	far := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	r := record("", `{"id":"a","at":"2020-01-01T00:00:00Z"}`)
	r.Override = &far
	if got, fault := n.Decode(r, nil); fault != nil || len(got) != 1 || got[0].Version.EventTime != far {
		t.Errorf("an override: %+v, %v", got, fault)
	}
	free := nodes(t, decode.NodeMapping{ID: "id", EventTime: "at"})
	if _, fault := free.Decode(record("", `{"id":"a","at":"9999-01-01T00:00:00Z"}`), nil); fault != nil {
		t.Errorf("without a bound: %v", fault)
	}
}

// TestTimestampsOutOfRange: a producer that counts nanoseconds in the place of milliseconds, or writes the largest
// number, is ahead of every clock, and no event time is outside of what our formats have.
func TestTimestampsOutOfRange(t *testing.T) {
	last := time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC)
	for _, at := range []time.Time{
		last.Add(time.Microsecond), time.UnixMilli(stamp.UnixMicro()), time.UnixMilli(stamp.UnixNano()),
		time.UnixMilli(math.MaxInt64),
	} {
		r := record("a", `{"id":"a"}`)
		r.Time = at
		bounded, free := nodes(t, decode.NodeMapping{ID: "id"}), nodes(t, decode.NodeMapping{ID: "id"})
		bounded.LimitFuture(24*time.Hour, func() time.Time { return stamp })
		if got, fault := bounded.Decode(r, nil); fault == nil || fault.Code != decode.FutureTime || len(got) > 0 {
			t.Errorf("%v: %+v, %v", at, got, fault)
		}
		got, fault := free.Decode(r, nil)
		if fault != nil || len(got) != 1 || got[0].Version.EventTime != last.UnixMicro() {
			t.Errorf("%v, without a bound: %+v, %v", at, got, fault)
		}
	}
}
