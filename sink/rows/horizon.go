package rows

import (
	"slices"
	"time"
)

// Horizon is a point in time, in microseconds since the Unix epoch. What was ordered at it or before does not count.
// The zero value is none: everything counts.
type Horizon int64

const day = int64(24 * time.Hour / time.Microsecond)

// ahead bounds how far the time of an order can be later than the event time of the statement that says it. A later
// one is a wrong date, or lies ahead on purpose.
const ahead = day

// LineTime is the time by which the lines of a statement come to lie behind a horizon: that of the order, or what its
// event time allows at most. So no statement counts for longer than a newer one is remembered that it may lose to.
func LineTime(order, eventTime int64) int64 { return min(order, eventTime+ahead) }

// HorizonAt is the horizon of orders that count for a while, by the newest time of an order: that time as of the
// beginning of its day (UTC), less the while. For 0 there is none.
func HorizonAt(newest int64, keep time.Duration) Horizon {
	if keep <= 0 || newest <= 0 {
		return 0
	}
	return Horizon(max(0, newest-newest%day-keep.Microseconds()))
}

// Passed reports whether lines of a time count no more.
func (h Horizon) Passed(lineTime int64) bool { return h > 0 && lineTime <= int64(h) }

// Forgets reports whether no line counts that was stated at an event time or before, whatever time it has.
func (h Horizon) Forgets(eventTime int64) bool { return h > 0 && eventTime+ahead <= int64(h) }

// LineTimes returns the times of the items, by which they come to lie behind a horizon.
func (r *Order) LineTimes() []int64 {
	if len(r.Times) > 0 {
		return r.Times
	}
	return slices.Repeat([]int64{r.Time}, len(r.Items))
}

// SetLineTimes is the inverse of LineTimes.
func (r *Order) SetLineTimes(all []int64) {
	if r.Times = nil; slices.ContainsFunc(all, func(t int64) bool { return t != r.Time }) {
		r.Times = all
	}
}

// Expire takes from an order what does not count: items, and the customer of an order that was placed too long ago. An
// order without items is deleted.
func (r *Order) Expire(h Horizon) {
	if h.Passed(r.Time) {
		r.Customer = ""
	}
	times := r.LineTimes()
	if slices.ContainsFunc(times, h.Passed) {
		items, quantities := r.Items, r.Quantities
		r.Items, r.Quantities = nil, nil
		var left []int64
		for i, t := range times {
			if !h.Passed(t) {
				r.Items, r.Quantities = append(r.Items, items[i]), append(r.Quantities, quantities[i])
				left = append(left, t)
			}
		}
		r.SetLineTimes(left)
		r.Deleted = len(r.Items) == 0
	}
}
