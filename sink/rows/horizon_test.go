package rows

import (
	"fmt"
	"testing"
	"time"
)

func micros(s string) int64 {
	t, err := time.Parse(time.DateTime, s)
	if err != nil {
		panic(err)
	}
	return t.UnixMicro()
}

// TestHorizonIsOfDays: the horizon moves at midnight, and never into the time before 1970, where there is none.
func TestHorizonIsOfDays(t *testing.T) {
	week := 7 * 24 * time.Hour
	for _, c := range []struct {
		newest int64
		keep   time.Duration
		want   Horizon
	}{
		{0, week, 0},
		{micros("2026-03-10 00:00:00"), 0, 0},
		{micros("2026-03-10 00:00:00"), week, Horizon(micros("2026-03-03 00:00:00"))},
		{micros("2026-03-10 23:59:59"), week, Horizon(micros("2026-03-03 00:00:00"))},
		{micros("2026-03-10 00:00:00") - 1, week, Horizon(micros("2026-03-02 00:00:00"))},
		{micros("2026-03-10 12:00:00"), 36 * time.Hour, Horizon(micros("2026-03-08 12:00:00"))},
		{micros("1970-01-05 00:00:00"), week, 0},
	} {
		if got := HorizonAt(c.newest, c.keep); got != c.want {
			t.Errorf("the horizon at %d, %v before, is %d, want %d", c.newest, c.keep, got, c.want)
		}
	}
}

func TestBoundsOfAHorizon(t *testing.T) {
	h := Horizon(micros("2026-03-03 00:00:00"))
	if !h.Passed(int64(h)) || h.Passed(int64(h)+1) {
		t.Error("what was ordered at the horizon does not count, and what was later does")
	}
	if !h.Forgets(int64(h)-day) || h.Forgets(int64(h)-day+1) {
		t.Error("a statement of a day before the horizon is forgotten, and a later one is not")
	}
	if none := Horizon(0); none.Passed(-1) || none.Forgets(-2*day) {
		t.Error("without a horizon something has expired")
	}
	if LineTime(7+day, 7) != 7+day || LineTime(8+day, 7) != 7+day || LineTime(3, 7) != 3 {
		t.Error("an order is placed a day after it was stated at most")
	}
}

// TestOrdersExpireByLine: a line counts by its own time, and the customer by that of the order.
func TestOrdersExpireByLine(t *testing.T) {
	order := func(times ...int64) Order {
		o := Order{OrderID: "o", Time: 10, Customer: "c", Items: []string{"a", "b"}, Quantities: []float32{1, 2}}
		o.SetLineTimes(times)
		return o
	}
	for _, c := range []struct {
		order   Order
		horizon Horizon
		want    string
	}{
		{order(10, 10), 0, "[a b] [1 2] [] c false"},
		{order(10, 10), 9, "[a b] [1 2] [] c false"},
		{order(10, 10), 10, "[] [] []  true"},
		{order(10, 12), 9, "[a b] [1 2] [10 12] c false"},
		{order(10, 12), 10, "[b] [2] [12]  false"},
		{order(8, 10), 8, "[b] [2] [] c false"},
		{order(10, 12), 12, "[] [] []  true"},
	} {
		o := c.order
		o.Expire(c.horizon)
		if got := fmt.Sprint(o.Items, o.Quantities, o.Times, " ", o.Customer, " ", o.Deleted); got != c.want {
			t.Errorf("%+v after %d is %q, want %q", c.order, c.horizon, got, c.want)
		}
		if again := o; true {
			again.Expire(c.horizon)
			if fmt.Sprint(again) != fmt.Sprint(o) {
				t.Errorf("%+v changes to %+v when it expires again", o, again)
			}
		}
	}
}
