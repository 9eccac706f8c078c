package decode

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"giantstream/stream/mutation"
)

// OrderMapping maps the values of a topic of orders.
type OrderMapping struct {
	// Debezium as in NodeMapping.
	Debezium bool
	// ID of the order; a value without one takes the record's key. Where no field tells orders apart alone, several
	// do together, such as the customer and the day.
	ID []string
	// Items are what was ordered: one, a list, or several (`line_items[*].sku`).
	Items string
	// Quantity of each item; "" or an absent field is 1. It lies beside the item (`line_items[*].quantity`), or
	// in a list that is parallel to the list of items.
	Quantity string
	// Time is when the order was placed; "" or an absent field takes the event time.
	Time string
	// EventTime as in NodeMapping.
	EventTime string
	// Kind of the order: a path, a constant in double quotes, or "" for none.
	Kind string
	// Customer is who placed it, "" for none. Only a hash of it is kept.
	Customer string
	// Deleted says which records delete their order, or in mode Add their items, as in NodeMapping.
	Deleted string
	// Mode says what a record states: all lines of its order (Replace), or some (Add). "" is Add where Items leads into
	// no list.
	Mode Mode
	// MaxItems bounds the lines of one record.
	MaxItems int
}

// Where the further fields of orders are.
const (
	slotQuantity = slotText + iota
	slotPlaced
	slotKind
	slotCustomer
	orderEnd
	orderSlots = orderEnd - slotText
)

// customerBytes is how much of the SHA-256 of a customer is kept.
const customerBytes = 16

// orderDecoding is what a decoder of orders knows of its mapping.
type orderDecoding struct {
	maxItems int
	idParts  []string // the paths of an id of several fields, else none
	kind     string   // of all orders, "" if a field says it
	beside   bool     // quantities lie in the same element as items, not at the same index of another list
}

// Orders returns a decoder for a topic of orders, which is an input of a pipeline with that many shards.
func Orders(m OrderMapping, in mutation.Input, l Limits, shards int) (*Decoder, error) {
	d := &Decoder{rank: uint8(in), mode: m.Mode, wild: true, timed: m.EventTime != "",
		orders: &orderDecoding{maxItems: m.MaxItems}}
	if m.Debezium {
		d.changes = newChangeReader()
	}
	switch {
	case len(m.ID) == 0 || slices.Contains(m.ID, "") || m.Items == "":
		return nil, errors.New("mapping of baskets: id and items both need a path")
	case m.MaxItems < 1:
		return nil, fmt.Errorf("mapping of baskets.max_items: %d is less than 1", m.MaxItems)
	case m.Mode == "":
		if d.mode = Add; strings.Contains(m.Items, "[") {
			d.mode = Replace
		}
	case m.Mode != Add && m.Mode != Replace:
		return nil, fmt.Errorf("mapping of baskets.mode: %q is neither %q nor %q", m.Mode, Add, Replace)
	}
	if p, err := ParsePath(m.Items); err == nil && d.mode == Add {
		d.wild = p.optional()
	}
	var err error
	kind := m.Kind
	if len(kind) > 0 && kind[0] == '"' {
		if d.orders.kind, err = strconv.Unquote(kind); err != nil {
			return nil, errors.Join(&FieldError{Field: "baskets.kind",
				Err: fmt.Errorf("cannot read the constant %s", kind)})
		}
		kind = ""
	}
	if d.orders.beside, err = beside(m.Items, m.Quantity); err != nil {
		return nil, errors.Join(&FieldError{Field: "baskets.quantity", Err: err})
	}
	fields := []mappedField{
		{name: "baskets.id", path: m.ID[0], slot: slotID},
		{name: "baskets.items", path: m.Items, slot: slotEnds, many: true, states: true},
		{name: "baskets.quantity", path: m.Quantity, slot: slotQuantity, many: true, states: true},
		{name: "baskets.time", path: m.Time, slot: slotPlaced},
		{name: "baskets.event_time", path: m.EventTime, slot: slotTime},
		{name: "baskets.kind", path: kind, slot: slotKind},
		{name: "baskets.customer", path: m.Customer, slot: slotCustomer},
	}
	if len(m.ID) > 1 {
		d.orders.idParts = m.ID
		for i, path := range m.ID[1:] {
			fields = append(fields, mappedField{name: "baskets.id", path: path, slot: idPart(i + 1)})
		}
	}
	return d, d.init(fields, "baskets.deleted", m.Deleted, l, shards)
}

// idPart is the slot of a field of an id that several make up.
func idPart(i int) slot {
	if i == 0 {
		return slotID
	}
	return orderEnd + slot(i-1)
}

// joins reports whether several fields make up an id.
func (o *orderDecoding) joins() bool { return o != nil && len(o.idParts) > 0 }

// slots is how many slots the further fields have.
func (o *orderDecoding) slots() slot { return orderSlots + slot(max(len(o.idParts)-1, 0)) }

var escapePart = strings.NewReplacer(`\`, `\\`, `|`, `\|`)

// joinedID returns the id that several fields of a row make up: c17|2026-03-01. No other fields give the same one.
// before: the row is one before a change, which may have placeholders.
func (d *Decoder) joinedID(before bool) (string, *Fault) {
	parts := make([]string, len(d.orders.idParts))
	for i, path := range d.orders.idParts {
		v, ok := d.one(idPart(i))
		if !ok || before && placeholder(v) {
			return "", faultf(MissingID, "no %s in the value, a part of the order's id (ingest.baskets.id)", path)
		}
		part, fault := d.idOf(v, path)
		if fault != nil {
			return "", fault
		}
		parts[i] = escapePart.Replace(part)
	}
	return checkID(strings.Join(parts, "|"), "id")
}

// beside reports whether the paths lead into the elements of one list. If they do not, each may have one list at most,
// because more cannot be parallel.
func beside(items, quantity string) (bool, error) {
	a, err := ParsePath(items)
	if err != nil || quantity == "" {
		return false, nil //nolint:nilerr // init reports it
	}
	b, err := ParsePath(quantity)
	if err != nil {
		return false, nil //nolint:nilerr // init reports it
	}
	in, of := a.elements(), b.elements()
	if len(in) > 0 && len(in) < len(a) && len(of) < len(b) && slices.Equal(in, of) {
		return true, nil
	}
	if lists(a) > 1 || lists(b) > 1 {
		return false, fmt.Errorf("path %q leads elsewhere than that of the items, %q; it must lead to a field of the "+
			"same elements", quantity, items)
	}
	return false, nil
}

// elements returns the part of a path up to its last [*].
func (p Path) elements() Path {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i].field == "" && p[i].index == all {
			return p[:i+1]
		}
	}
	return nil
}

func lists(p Path) (n int) {
	for _, s := range p {
		if s.field == "" && s.index == all {
			n++
		}
	}
	return n
}

// order completes what a record says of an order; gone: that it, or in mode Add its items, are no more.
func (d *Decoder) order(m mutation.Mutation, gone bool, dst []mutation.Mutation) ([]mutation.Mutation, *Fault) {
	o, fault := d.orderHead(&m, gone)
	if fault != nil {
		return dst, fault
	}
	items := d.scan.captured[slotEnds]
	switch {
	case gone && (d.mode == Replace || len(items) == 0):
		m.Op = mutation.SetOrder
	case len(items) == 0 && !d.wild && !d.scan.listed[slotEnds]:
		return dst, faultf(MissingItem, "no item in the value")
	default:
		if o.Lines, fault = d.lines(items, !gone); fault != nil {
			return dst, fault
		}
		switch {
		case d.mode == Replace:
			m.Op = mutation.SetOrder
		case len(o.Lines) == 0:
			return dst, nil
		case gone:
			m.Op = mutation.RemoveLines
		default:
			m.Op = mutation.AddLines
		}
	}
	m.Order = o
	return append(dst, m), nil
}

// orderHead reads an order without its lines. Of one that is gone, nothing else matters.
func (d *Decoder) orderHead(m *mutation.Mutation, gone bool) (o *mutation.Order, fault *Fault) {
	o = &mutation.Order{Time: m.Version.EventTime, Kind: d.orders.kind}
	if gone {
		return o, nil
	}
	if v, ok := d.one(slotPlaced); ok {
		if o.Time, fault = d.placed(v); fault != nil {
			return o, fault
		}
	}
	if v, ok := d.one(slotKind); ok {
		text, ok := d.plain(v)
		switch {
		case !ok:
			return o, faultf(BadType, "kind is %s; it must be a string, a number or a boolean", v.kind)
		case len(text) > MaxIDBytes:
			return o, faultf(TextTooLarge, "the kind has %d bytes; the limit is %d", len(text), MaxIDBytes)
		}
		o.Kind = text
	}
	if v, ok := d.one(slotCustomer); ok {
		if v.kind == kindNumber {
			v.raw = integral(v.raw)
		}
		text, ok := d.plain(v)
		if !ok {
			return o, faultf(BadType, "customer is %s; it must be a string or a number", v.kind)
		}
		if text != "" {
			sum := sha256.Sum256([]byte(text))
			o.Customer = hex.EncodeToString(sum[:customerBytes])
		}
	}
	return o, nil
}

// placed reads when an order was placed.
func (d *Decoder) placed(v value) (int64, *Fault) {
	us, fault := d.microsOf(v)
	if fault != nil {
		return 0, faultf(BadEventTime, "the time of the order: %s", fault.Message)
	}
	return us, nil
}

// lines returns the lines of a record, sorted. An item whose quantities do not add up to more than 0 came back, and is
// left out. Shops state a return as a further line with a negative quantity, so quantities are added before that.
func (d *Decoder) lines(items []value, quantified bool) ([]mutation.Line, *Fault) {
	if len(items) > d.orders.maxItems {
		return nil, faultf(TooManyItems,
			"the record has more than %d lines, which is the limit (ingest.baskets.max_items)", d.orders.maxItems)
	}
	var quantities []value
	if quantified {
		quantities = d.scan.captured[slotQuantity]
	}
	for _, q := range quantities {
		if q.misplaced {
			return nil, misplaced(q, "quantity")
		}
	}
	if len(quantities) > 0 && len(items) > 1 && !d.orders.beside &&
		d.scan.listed[slotEnds] != d.scan.listed[slotQuantity] {
		return nil, faultf(BadType, "the record has several items and one quantity, or one item and several quantities")
	}
	lines := make([]mutation.Line, 0, len(items))
	for _, v := range items {
		if v.kind == kindString && len(v.raw) == 0 && !v.misplaced {
			continue
		}
		item, fault := d.idOf(v, "item")
		if fault != nil {
			return nil, fault
		}
		quantity := float32(1)
		var q value
		if q, quantities = d.quantityOf(v, quantities); q.raw != nil || q.kind != kindString {
			if quantity, fault = readQuantity(q, item); fault != nil {
				return nil, fault
			}
		}
		lines = append(lines, mutation.Line{Item: item, Quantity: quantity})
	}
	lines = slices.DeleteFunc(mutation.SortLines(lines), func(l mutation.Line) bool { return l.Quantity <= 0 })
	for _, l := range lines {
		if math.IsInf(float64(l.Quantity), 0) {
			return nil, faultf(BadType, "the quantities of item %s add up to more than can be kept", quote(l.Item))
		}
	}
	return lines, nil
}

// quantityOf returns the quantity of an item, the zero value if there is none, and those that may be of later items.
// Both come in the order of the document.
func (d *Decoder) quantityOf(item value, quantities []value) (q value, rest []value) {
	place := func(v value) int {
		if d.orders.beside {
			return v.element
		}
		return v.index
	}
	for len(quantities) > 0 && place(quantities[0]) < place(item) {
		quantities = quantities[1:]
	}
	for _, v := range quantities {
		if place(v) != place(item) {
			break
		}
		q = v // of a repeated field the last one counts
	}
	return q, quantities
}

// readQuantity reads a number; CSV has only strings. An empty one is 1.
func readQuantity(v value, item string) (float32, *Fault) {
	if v.kind != kindNumber && v.kind != kindString {
		return 0, faultf(BadType, "the quantity of item %s is %s; it must be a number", quote(item), v.kind)
	}
	text := bytes.TrimSpace(v.raw)
	if len(text) == 0 {
		return 1, nil
	}
	f, like, ok := single(v)
	if !ok {
		return 0, faultf(BadType, "the quantity of item %s is %s; it must be a finite number%s", quote(item),
			quote(string(text)), like)
	}
	return f, nil
}

// orderGone is what a null value says: that an order is no more, or, if the key names them, some of its items.
func (d *Decoder) orderGone(m mutation.Mutation, dst []mutation.Mutation) ([]mutation.Mutation, *Fault) {
	if d.mode == Add && len(d.keyEnds) > 0 {
		return d.removeItems(m, d.keyEnds, dst)
	}
	m.Op, m.Order = mutation.SetOrder, &mutation.Order{Time: m.Version.EventTime}
	return append(dst, m), nil
}

// orderRowGone is what an event says of a deleted row.
func (d *Decoder) orderRowGone(m mutation.Mutation, dst []mutation.Mutation) ([]mutation.Mutation, *Fault) {
	if d.mode == Replace {
		return d.orderGone(m, dst)
	}
	items := d.scan.captured[slotEnds]
	if len(items) == 0 {
		items = d.keyEnds
	}
	if len(items) == 0 || placeholder(items[0]) {
		return dst, faultf(BadChange, "the event of a deleted row lacks the item (baskets.items); give the table "+
			"REPLICA IDENTITY FULL, so that events have all columns")
	}
	return d.removeItems(m, items, dst)
}

// takeBackItems takes back the items that an updated row no longer states.
func (d *Decoder) takeBackItems(m mutation.Mutation, prior []value, dst []mutation.Mutation) ([]mutation.Mutation,
	*Fault) {
	var gone []value
	for _, was := range prior {
		if !containsValue(d.scan.captured[slotEnds], was) {
			gone = append(gone, was)
		}
	}
	return d.removeItems(m, gone, dst)
}

func (d *Decoder) removeItems(m mutation.Mutation, items []value, dst []mutation.Mutation) ([]mutation.Mutation,
	*Fault) {
	lines, fault := d.lines(items, false)
	if fault != nil || len(lines) == 0 {
		return dst, fault
	}
	m.Op, m.Order = mutation.RemoveLines, &mutation.Order{Time: m.Version.EventTime, Lines: lines}
	return append(dst, m), nil
}

// Further returns a decoder for a topic of attributes, of orders, or of edges of one kind.
func Further(m *Mapping, topic string, in mutation.Input, l Limits, shards int) (*Decoder, error) {
	if of, ok := m.Attributes[topic]; ok {
		return Attributes(of, in, l, shards)
	}
	if of, ok := m.Orders[topic]; ok {
		return Orders(of, in, l, shards)
	}
	if of, ok := m.EdgeTopics[topic]; ok {
		return edgesOf(of, in, l, shards)
	}
	return nil, fmt.Errorf("topic %s is no input of the pipeline", topic)
}
