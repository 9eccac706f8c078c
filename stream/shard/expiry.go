package shard

import (
	"errors"
	"fmt"
	"time"

	"giantstream/sink/rows"
	"giantstream/stream/mutation"
	"giantstream/stream/shard/engine"
)

// orderClock says which orders count. It is a function of the records, never of the time of day.
type orderClock struct {
	keep         time.Duration
	newest       int64 // time of an order, 0 for none
	orderHorizon rows.Horizon
}

// tick moves the clock by what is stated of an order. The time of an order that is later than its statement can mean is
// a wrong date, and moves nothing.
func (c *orderClock) tick(m *mutation.Mutation) {
	if at := m.Order.Time; states(m) && at > c.newest && rows.LineTime(at, m.Version.EventTime) == at {
		c.newest = at
		c.orderHorizon = max(c.orderHorizon, rows.HorizonAt(at, c.keep))
	}
}

// states reports whether a mutation states lines of an order.
func states(m *mutation.Mutation) bool { return m.Op != mutation.RemoveLines && len(m.Order.Lines) > 0 }

// expires reports whether a mutation states lines that do not count any more.
func (c *orderClock) expires(m *mutation.Mutation) bool {
	return states(m) && c.orderHorizon.Passed(rows.LineTime(m.Order.Time, m.Version.EventTime))
}

// orderClock is that of the records applied.
func (s *Shard) orderClock() orderClock {
	return orderClock{s.opts.KeepOrders, s.state.meta.OrderClock, s.state.meta.OrderHorizon}
}

// openOrders takes the clock to where the commit log has it, and lets orders expire that the options do not keep any
// longer. Those that have expired stay so.
func (s *Shard) openOrders() {
	m := &s.state.meta
	if s.head != nil {
		m.OrderClock = max(m.OrderClock, s.head.OrderClock)
		m.OrderHorizon = max(m.OrderHorizon, s.head.OrderHorizon)
	}
	switch wanted := rows.HorizonAt(m.OrderClock, s.opts.KeepOrders); {
	case wanted > m.OrderHorizon:
		m.OrderHorizon = wanted
	case wanted < m.OrderHorizon:
		s.opts.Log.Info("orders have expired that ingest.baskets.keep would let count now; they stay gone",
			"up_to", time.UnixMicro(int64(m.OrderHorizon)).UTC())
	}
	s.unsaved = s.unsaved || s.head != nil && s.head.OrderHorizon < m.OrderHorizon
}

// expire drops what cannot count after a horizon, whatever is stated from now on: lines and the customer, and in the
// end the versions. It leaves the slice of lines that was there as it was.
//
// A line that does not count leaves its version, because an older statement with a later time must lose to it. Once
// every statement of that version's event time has expired, nothing can lose to it but what does not count anyway.
func (o *order) expire(h rows.Horizon) {
	if h == 0 || !o.known() {
		return
	}
	kept := make([]orderLine, 0, len(o.lines))
	for _, l := range o.lines {
		if l.live && h.Passed(l.time) {
			l.live, l.quantity, l.time = false, 0, 0
		}
		replaced := o.replaced.set && l.at.Compare(o.replaced.at) <= 0 // whose version says as much
		if l.live || !replaced && !h.Forgets(l.at.EventTime) {
			kept = append(kept, l)
		}
	}
	o.lines = kept
	if h.Passed(o.time) {
		o.customer = ""
	}
	if o.replaced.set && h.Forgets(o.replaced.at.EventTime) {
		o.replaced = mark{}
	}
	if o.stated && h.Forgets(o.at.EventTime) {
		*o = order{replaced: o.replaced, lines: o.lines}
	}
}

const (
	// sweepShare is how many times as long as a sweep of the orders took nothing is swept.
	sweepShare = 16
	// sweepBatch is the size of the writes of a sweep.
	sweepBatch = 1 << 20
)

// expireOrders drops from the open window what has expired by its end. Where the files are due to be swept it returns
// how much has expired there. That is dropped once the horizon is committed (sweep): a worker that begins again from
// the files could commit less.
func (s *Shard) expireOrders() (gone change, sweep bool, err error) {
	h := s.state.meta.OrderHorizon
	if h == 0 {
		return gone, false, nil
	}
	var open change
	for _, o := range s.state.pending.orders.all {
		before := o.value
		if o.value.expire(h); !o.value.equals(&before) {
			o.changed = true
			open.addOrder(before.count(), o.value.count())
		}
	}
	s.state.meta.Orders += open.orders
	s.state.meta.Lines += open.lines
	since := s.opts.Clock().Sub(s.swept)
	if h <= s.state.meta.OrdersSwept || since >= 0 && since < sweepShare*s.sweeping { // clocks may go back
		return gone, false, nil
	}
	return gone, true, s.state.eachExpired(h, func(k orderID, _ []byte, before, after *order) error {
		if s.state.pending.orders.all[k] == nil {
			gone.addOrder(before.count(), after.count())
		}
		return nil
	})
}

// sweep drops from the files what has expired by the head. It needs a state with nothing pending.
func (s *Shard) sweep() error {
	began := s.opts.Clock()
	if err := s.state.sweepOrders(s.head.OrderHorizon); err != nil {
		return fmt.Errorf("drop expired orders: %w", err)
	}
	s.swept = s.opts.Clock()
	s.sweeping = s.swept.Sub(began)
	return nil
}

func (s *state) sweepOrders(h rows.Horizon) error {
	b := s.db.NewBatch()
	defer b.Close() //nolint:errcheck // Commit has reported all that matters
	var scratch []byte
	var gone change
	flush := func() error {
		s.meta.Orders += gone.orders
		s.meta.Lines += gone.lines
		gone = change{}
		err := s.write(b, 0)
		b.Reset()
		return err
	}
	err := s.eachExpired(h, func(_ orderID, key []byte, before, after *order) error {
		gone.addOrder(before.count(), after.count())
		if err := writeOrder(b, key, after, &scratch); err != nil || b.Len() < sweepBatch {
			return engine.Failure(err)
		}
		return flush()
	})
	if err != nil {
		return err
	}
	s.meta.OrdersSwept = h
	return flush()
}

// eachExpired calls f with every order in the files of which something has expired, as it is there and without that.
func (s *state) eachExpired(h rows.Horizon, f func(k orderID, key []byte, before, after *order) error) (err error) {
	it, err := iterate(s.db, spaceOrder)
	if err != nil {
		return engine.Failure(err)
	}
	defer func() { err = errors.Join(err, engine.Failure(it.Close())) }()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return engine.Failure(err)
		}
		before, err := decodeOrder(value)
		if err != nil {
			return err
		}
		after := before
		if after.expire(h); after.equals(&before) {
			continue
		}
		k, err := orderOfKey(it.Key())
		if err == nil {
			err = f(k, it.Key(), &before, &after)
		}
		if err != nil {
			return err
		}
	}
	return engine.Failure(it.Error())
}
