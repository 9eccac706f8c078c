package shard

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"giantstream/sink/rows"
	"giantstream/stream/mutation"
)

// orderID names an order: the input that states it, and its id there.
type orderID struct {
	input byte
	id    string
}

func (a orderID) compare(b orderID) int {
	if a.input != b.input {
		return int(a.input) - int(b.input)
	}
	return strings.Compare(a.id, b.id)
}

// order holds the registers of an order: who placed it and when, and one for each line. One partition of one topic
// states all of it, so there is no mirror, and no row changes by what another shard commits. The zero value stands
// for an order of which nothing was stated.
type order struct {
	// stated: at and what follows are of the newest SetOrder or AddLines. What takes lines back does not say when the
	// order was placed.
	stated         bool
	at             mutation.Version
	time           int64
	kind, customer string
	// replaced is the newest version that stated the whole order. Older lines are dead on arrival, and are not kept.
	replaced mark
	lines    []orderLine // ascending by item
}

// orderLine is a last-writer-wins register. A line that was taken back is kept: an older statement may come later.
type orderLine struct {
	item     string
	quantity float32
	live     bool
	at       mutation.Version
	time     int64 // of a live line: rows.LineTime
}

// newer orders statements on a line by version. Two of one version come from one record. If they disagree the live
// one wins, then the later time, then the larger quantity, so that the outcome does not depend on the order of arrival,
// nor on whether the earlier time has expired.
func (l *orderLine) newer(than *orderLine) bool {
	if c := l.at.Compare(than.at); c != 0 {
		return c > 0
	}
	if l.live != than.live {
		return l.live
	}
	if l.time != than.time {
		return l.time > than.time
	}
	return l.live && l.quantity > than.quantity
}

// maxOrderLines bounds what one order can take in memory, should records of all orders have the same id: of more items
// the first ones by id are kept, and the shard warns.
const maxOrderLines = 10_000

// apply enters a statement, and reports whether some of it lost to a newer one. It leaves the slice of lines that was
// there as it was.
func (o *order) apply(m *mutation.Mutation) (lost bool) {
	at := m.Version
	if m.Op != mutation.RemoveLines {
		o.applyHead(m.Order, at)
	}
	if m.Op == mutation.SetOrder && (!o.replaced.set || at.Compare(o.replaced.at) > 0) {
		o.replaced = mark{set: true, at: at}
		kept := make([]orderLine, 0, len(o.lines))
		for _, l := range o.lines {
			if l.at.Compare(at) >= 0 {
				kept = append(kept, l)
			}
		}
		o.lines = kept
	}
	if o.replaced.set && at.Compare(o.replaced.at) < 0 {
		return true
	}
	return o.applyLines(m.Order, m.Op != mutation.RemoveLines, at)
}

// applyHead enters what a statement says of the order as a whole. Of equal versions the greatest wins.
func (o *order) applyHead(said *mutation.Order, at mutation.Version) {
	if c := at.Compare(o.at); o.stated && (c < 0 || c == 0 && !o.precedes(said)) {
		return
	}
	o.stated, o.at = true, at
	o.time, o.kind, o.customer = said.Time, said.Kind, said.Customer
}

func (o *order) precedes(said *mutation.Order) bool {
	if o.time != said.Time {
		return o.time < said.Time
	}
	if o.kind != said.Kind {
		return o.kind < said.Kind
	}
	return o.customer < said.Customer
}

// applyLines merges stated lines into those of the order.
func (o *order) applyLines(said *mutation.Order, live bool, at mutation.Version) (lost bool) {
	merged := make([]orderLine, 0, len(o.lines)+len(said.Lines))
	known := o.lines
	for _, s := range said.Lines {
		for ; len(known) > 0 && known[0].item < s.Item; known = known[1:] {
			merged = append(merged, known[0])
		}
		l := orderLine{item: s.Item, live: live, at: at}
		if live {
			l.quantity, l.time = s.Quantity, rows.LineTime(said.Time, at.EventTime)
		}
		if len(known) > 0 && known[0].item == s.Item {
			if !l.newer(&known[0]) {
				lost = lost || at.Compare(known[0].at) < 0
				l = known[0]
			}
			known = known[1:]
		}
		merged = append(merged, l)
	}
	merged = append(merged, known...)
	o.lines = merged[:min(len(merged), maxOrderLines)]
	return lost
}

// count returns how many lines are live.
func (o *order) count() (live int) {
	for i := range o.lines {
		if o.lines[i].live {
			live++
		}
	}
	return live
}

// sameRow reports whether two orders have the same row.
func (o *order) sameRow(p *order) bool {
	if o.known() != p.known() || o.eventTime() != p.eventTime() || o.time != p.time || o.kind != p.kind ||
		o.customer != p.customer {
		return false
	}
	a, b := o.lines, p.lines
	for {
		for len(a) > 0 && !a[0].live {
			a = a[1:]
		}
		for len(b) > 0 && !b[0].live {
			b = b[1:]
		}
		if len(a) == 0 || len(b) == 0 {
			return len(a) == len(b)
		}
		if a[0].item != b[0].item || a[0].quantity != b[0].quantity || a[0].time != b[0].time {
			return false
		}
		a, b = a[1:], b[1:]
	}
}

// equals reports whether two orders have the same registers.
func (o *order) equals(p *order) bool {
	return o.stated == p.stated && o.at == p.at && o.time == p.time && o.kind == p.kind && o.customer == p.customer &&
		o.replaced == p.replaced && slices.Equal(o.lines, p.lines)
}

// known reports whether anything was stated of the order.
func (o *order) known() bool { return o.stated || len(o.lines) > 0 }

// eventTime is that of the newest statement.
func (o *order) eventTime() (t int64) {
	if t = math.MinInt64; o.stated {
		t = o.at.EventTime
	}
	for i := range o.lines {
		t = max(t, o.lines[i].at.EventTime)
	}
	return t
}

// row builds the order's row.
func (o *order) row(k orderID) rows.Order {
	r := rows.Order{Input: int32(k.input), OrderID: k.id, Time: o.time, Kind: o.kind, Customer: o.customer,
		EventTime: o.eventTime()}
	var times []int64
	for i := range o.lines {
		if l := &o.lines[i]; l.live {
			r.Items, r.Quantities = append(r.Items, l.item), append(r.Quantities, l.quantity)
			times = append(times, l.time)
		}
	}
	r.SetLineTimes(times)
	r.Deleted = len(r.Items) == 0
	return r
}

// Bits of the first byte of an order.
const (
	flagOrderReplaced = 1 << iota
	flagOrderStated
)

// Bits of the first byte of a line.
const (
	flagLineLive  = 1 << iota
	flagLineOwn   // the line's version follows
	flagLineOne   // the quantity is 1
	flagLineWhole // the quantity is a whole number, as a varint
	flagLineSaid  // the line's time is the event time of its version
	flagLineTime  // the line's time follows
)

func (o *order) encode(buf []byte) []byte {
	var flags byte
	if o.replaced.set {
		flags |= flagOrderReplaced
	}
	if o.stated {
		flags |= flagOrderStated
	}
	buf = append(buf[:0], flags)
	if o.stated {
		buf = binary.AppendVarint(appendVersion(buf, o.at), o.time)
		buf = appendString(appendString(buf, o.kind), o.customer)
	}
	if o.replaced.set {
		buf = appendVersion(buf, o.replaced.at)
	}
	buf = binary.AppendUvarint(buf, uint64(len(o.lines)))
	for i := range o.lines {
		buf = o.lines[i].append(buf, o)
	}
	return buf
}

func (l *orderLine) append(buf []byte, of *order) []byte {
	var flags byte
	if l.live {
		flags |= flagLineLive
	}
	if l.at != of.at {
		flags |= flagLineOwn
	}
	switch {
	case !l.live || l.time == of.lineTime(l.at):
	case l.time == l.at.EventTime:
		flags |= flagLineSaid
	default:
		flags |= flagLineTime
	}
	whole := int64(l.quantity)
	switch {
	case l.quantity == 1:
		flags |= flagLineOne
	case math.Abs(float64(l.quantity)) < 1<<24 && float32(whole) == l.quantity:
		flags |= flagLineWhole
	}
	buf = appendString(append(buf, flags), l.item)
	switch {
	case flags&flagLineOne != 0:
	case flags&flagLineWhole != 0:
		buf = binary.AppendVarint(buf, whole)
	default:
		buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(l.quantity))
	}
	if flags&flagLineOwn != 0 {
		buf = appendVersion(buf, l.at)
	}
	if flags&flagLineTime != 0 {
		buf = binary.AppendVarint(buf, l.time)
	}
	return buf
}

// lineTime is the time of a line that was stated at a version, unless its value says otherwise.
func (o *order) lineTime(at mutation.Version) int64 { return rows.LineTime(o.time, at.EventTime) }

func appendString(buf []byte, s string) []byte {
	return append(binary.AppendUvarint(buf, uint64(len(s))), s...)
}

func decodeOrder(data []byte) (order, error) {
	d := decoder{data: data}
	flags := d.byte()
	o := order{stated: flags&flagOrderStated != 0}
	if o.stated {
		o.at, o.time, o.kind, o.customer = d.version(), d.varint(), d.string(), d.string()
	}
	if flags&flagOrderReplaced != 0 {
		o.replaced = mark{set: true, at: d.version()}
	}
	n := d.uvarint()
	if n > uint64(len(d.data)) { // a line takes more than a byte
		d.bad = true
	}
	if !d.bad {
		o.lines = make([]orderLine, n)
		for i := range o.lines {
			o.lines[i] = d.line(&o)
		}
	}
	if err := d.finish("order"); err != nil {
		return order{}, err
	}
	return o, nil
}

func (d *decoder) line(of *order) orderLine {
	flags := d.byte()
	l := orderLine{item: d.string(), live: flags&flagLineLive != 0, quantity: 1, at: of.at}
	switch {
	case flags&flagLineOne != 0:
	case flags&flagLineWhole != 0:
		l.quantity = float32(d.varint())
	default:
		l.quantity = math.Float32frombits(d.uint32())
	}
	if flags&flagLineOwn != 0 {
		l.at = d.version()
	}
	switch {
	case flags&flagLineTime != 0:
		l.time = d.varint()
	case flags&flagLineSaid != 0:
		l.time = l.at.EventTime
	case l.live:
		l.time = of.lineTime(l.at)
	}
	return l
}

// orderKind says how orders are kept.
var orderKind = registerKind[orderID, order]{name: "orders", marks: spaceOrderDue, ofKey: orderOfKey,
	decode: decodeOrder, put: writeOrder, expires: true, bytes: func(k orderID, o *order) int {
		return pendingOrderBytes + len(k.id) + linesBytes(o.lines)
	}}

func linesBytes(lines []orderLine) (n int) {
	for i := range lines {
		n += pendingOrderLineBytes + len(lines[i].item)
	}
	return n
}

// applyOrder enters what a mutation states of an order.
func (c *change) applyOrder(m *mutation.Mutation) error {
	if m.Order == nil {
		return fmt.Errorf("mutation of order %q at offset %d does not say what it states", m.ID, m.Version.Offset)
	}
	if c.tick(m); c.orderHorizon.Forgets(m.Version.EventTime) {
		c.expired = true
		return nil
	}
	c.expired = c.expired || c.expires(m)
	r, err := c.known.orders.get(c.known, orderID{input: m.Version.Rank, id: m.ID})
	if err != nil {
		return err
	}
	o := &r.value
	stored := *o
	o.expire(c.orderHorizon)
	before := *o
	c.lost = o.apply(m) || c.lost
	if len(o.lines) == maxOrderLines {
		c.full = m.ID
	}
	o.expire(c.orderHorizon)
	if o.equals(&stored) {
		return nil
	}
	r.changed = true
	c.known.take(linesBytes(o.lines) - linesBytes(stored.lines))
	is := o.count()
	c.addOrder(stored.count(), is)
	unseen := c.orderHorizon > 0 && before.count()+is == 0 // readers see no order without lines that count
	if unseen || o.sameRow(&before) {
		return nil
	}
	c.won = true
	return c.known.orders.mark(c, r)
}

// addOrder counts an order whose live lines have changed in number.
func (c *change) addOrder(was, is int) {
	c.lines += int64(is - was)
	c.orders += int64(min(is, 1) - min(was, 1))
}

// writeOrder puts an order into a batch, or its removal if nothing is known of it.
func writeOrder(b *pebble.Batch, key []byte, o *order, scratch *[]byte) error {
	if !o.known() {
		return b.Delete(key, nil)
	}
	*scratch = o.encode(*scratch)
	return b.Set(key, *scratch, nil)
}

// orderRows yields the rows of the orders that are due in a window, ascending by input and id.
func (s *state) orderRows(window int64) iter.Seq2[rows.Order, error] {
	return registerRows(s, &s.pending.orders, window, func(k orderID, o *order) (row rows.Order, known bool) {
		if !o.known() {
			return row, false
		}
		return o.row(k), true
	})
}
