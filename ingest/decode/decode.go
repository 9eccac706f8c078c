package decode

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"giantstream/ingest/client"
	"giantstream/stream/mutation"
)

// Record is one record of an input topic.
type Record struct {
	Key []byte
	// Value is nil for a null value, which deletes.
	Value []byte
	// Time is the record's timestamp.
	Time      time.Time
	Partition int
	Offset    int64
	// Override, if not nil, is the event time in microseconds since 1970, whatever the value and the
	// timestamp say, and LimitFuture does not apply. It is how a person answers a statement whose
	// event time is wrong and in the future.
	Override *int64
}

// Decoder decodes the records of one input topic. It is not safe for concurrent use; make one per
// goroutine.
type Decoder struct {
	rank  uint8 // of the versions
	edges bool  // edges topic, not nodes topic
	mode  Mode
	ends  []endPath // of the edges that node records carry
	wild  bool      // no edges at all is fine
	texts int
	strip bool // markup from texts
	// attributes are those of the records, ascending by name. attributesAlone: records have nothing
	// else, but vectors.
	attributes      []Attribute
	attributesAlone bool
	vectors         []Vector       // of the records, ascending by name
	orders          *orderDecoding // nil for other topics than of orders
	weighed         bool           // edges have a weight
	kinds           edgeKinds
	// conditions are those under which a record deletes; the slots of their fields begin at
	// firstCondition.
	conditions     []condition
	firstCondition slot
	choices        []choice
	limits         Limits
	shards         int
	// maxFuture bounds how far an event time may be ahead of clock; 0 is no bound.
	maxFuture time.Duration
	clock     func() time.Time

	root *pathNode
	scan scanner
	key  *keyReader
	// changes reads the values, which are change events of Debezium; nil if they are not.
	changes *changeReader
	types   connectTypes // of the rows of change events
	timed   bool         // the mapping has an event time
	// usualClass as in NodeMapping.
	usualClass bool
	// wasGone: the record that was read last says that a node or an edge is gone, whatever its value.
	wasGone bool
	// keyEnds are the far ends in the key, if the id is from a key that is an object.
	keyEnds []value
	buf     []byte
	object  []byte // of attributes
	numbers []byte // of a vector
	html    []byte // scratch

	fields []Field
	tally  *Tally
}

// Nodes returns a decoder for the nodes topic of a pipeline with that many shards.
func Nodes(m NodeMapping, l Limits, shards int) (*Decoder, error) {
	d := &Decoder{wild: true, texts: len(m.Text), strip: m.StripHTML, timed: m.EventTime != "",
		usualClass: m.UsualClass}
	if m.Debezium {
		d.changes = newChangeReader()
	}
	fields := []mappedField{
		{name: "nodes.id", path: m.ID, slot: slotID},
		{name: "nodes.class", path: m.Class, slot: slotClass},
		{name: "nodes.event_time", path: m.EventTime, slot: slotTime},
	}
	if err := d.mapAttributes(m.Attributes); err != nil {
		return nil, fmt.Errorf("mapping of nodes.attributes: %w", err)
	}
	if err := d.mapVectors(m.Vectors); err != nil {
		return nil, fmt.Errorf("mapping of nodes.vectors: %w", err)
	}
	fields = append(fields, d.attributeFields("nodes.attributes")...)
	fields = append(fields, d.vectorFields("nodes.vectors")...)
	if err := d.mapEnds(&m); err != nil {
		return nil, errors.Join(&FieldError{Field: "nodes.edges", Err: err})
	}
	for i, e := range d.ends {
		fields = append(fields, mappedField{name: "nodes.edges", path: e.path, slot: d.endSlot(i), many: true,
			states: true})
	}
	for i, t := range m.Text {
		fields = append(fields, mappedField{name: "nodes.text", path: t, slot: slotText + slot(i), many: true})
	}
	if m.ID == "" {
		return nil, errors.New("mapping of nodes.id: no path given")
	}
	return d, d.init(fields, "nodes.deleted", m.Deleted, l, shards)
}

// Edges returns a decoder for the edges topic of a pipeline with that many shards.
func Edges(m EdgeMapping, l Limits, shards int) (*Decoder, error) {
	return edgesOf(m, mutation.Edges, l, shards)
}

func edgesOf(m EdgeMapping, in mutation.Input, l Limits, shards int) (*Decoder, error) {
	d := &Decoder{rank: uint8(in), edges: true, mode: m.Mode, timed: m.EventTime != "",
		weighed: m.Weight != ""}
	if m.Debezium {
		d.changes = newChangeReader()
	}
	switch {
	case m.Src == "" || m.Dst == "":
		return nil, errors.New("mapping of edges: src and dst both need a path")
	case m.Mode == "":
		d.mode = Add
	case m.Mode != Add && m.Mode != Replace:
		return nil, fmt.Errorf("mapping of edges.mode: %q is neither %q nor %q", m.Mode, Add, Replace)
	}
	if p, err := ParsePath(m.Dst); err == nil {
		d.wild = p.optional() || m.Mode == Replace
	}
	var err error
	if d.kinds, err = kindsOf(&m); err != nil {
		return nil, errors.Join(&FieldError{Field: "edges.kind", Err: err})
	}
	return d, d.init([]mappedField{
		{name: "edges.src", path: m.Src, slot: slotID},
		{name: "edges.dst", path: m.Dst, slot: slotEnds, many: true, states: true},
		{name: "edges.event_time", path: m.EventTime, slot: slotTime},
		{name: "edges.weight", path: m.Weight, slot: slotWeight},
		{name: "edges.kind", path: d.kinds.path, slot: slotKindOfEdge},
	}, "edges.deleted", m.Deleted, l, shards)
}

func (d *Decoder) init(fields []mappedField, deletedName, deleted string, l Limits, shards int) error {
	if shards < 1 {
		return fmt.Errorf("decode: %d shards", shards)
	}
	var faults []error
	var err error
	if d.conditions, err = parseConditions(deleted); err != nil {
		faults = append(faults, &FieldError{Field: deletedName, Err: err})
	}
	d.firstCondition = slotText + slot(d.texts+len(d.attributes)+len(d.vectors)+len(d.ends))
	switch {
	case d.orders != nil:
		d.firstCondition += d.orders.slots()
	case d.edges:
		d.firstCondition += edgeSlots
	}
	for i, c := range d.conditions {
		fields = append(fields, mappedField{name: deletedName, path: c.path, slot: d.firstCondition + slot(i)})
	}
	d.shards = shards
	d.SetLimits(l)
	mapped := len(fields)
	fields, end := d.mapChoices(fields, d.firstCondition+slot(len(d.conditions)))
	d.scan.captured = make([][]value, end)
	d.scan.listed = make([]bool, len(d.scan.captured))
	for _, f := range fields[:mapped] {
		if f.path != "" {
			d.fields = append(d.fields, Field{Name: f.name, Path: f.path, slot: f.slot, living: d.living(f.slot)})
		}
	}
	if rest, ok := insideChange(fields[0].path); ok {
		faults = append(faults, &FieldError{Field: fields[0].name, Err: fmt.Errorf("path %q leads into a change event "+
			"of Debezium; set format: debezium, and write the paths as they are in the row: %s", fields[0].path, rest)})
	}
	if d.root, err = compile(fields, faults...); err != nil {
		return err
	}
	for i, f := range d.fields {
		column, _, _ := FirstField(f.Path)
		d.fields[i].column = d.root.field([]byte(column))
	}
	ends := ""
	if d.edges || d.orders != nil && d.mode == Add {
		ends = fields[1].path
	}
	d.key, err = newKeyReader(fields[0].path, ends)
	return err
}

// living reports whether a deletion does without a field. That of an edge names both ends, unless it means all edges
// of a node.
func (d *Decoder) living(s slot) bool {
	switch {
	case s == slotEnds:
		return !d.edges || d.mode == Replace
	case d.edges:
		return s == slotWeight
	}
	return s == slotClass || s >= slotText && s < d.firstCondition
}

// SetLimits changes the limits of the records that are decoded from now on.
func (d *Decoder) SetLimits(l Limits) {
	d.limits, d.scan.limit = l, l.EdgesPerRecord
	if d.orders != nil {
		d.scan.limit = d.orders.maxItems
	}
}

// LimitFuture makes a fault of every record whose event time is more than most ahead of the clock.
// Such a record would win over every correction until its time has come. The bound depends on when a
// record is read; 0, the default, is none.
func (d *Decoder) LimitFuture(most time.Duration, clock func() time.Time) {
	d.maxFuture, d.clock = most, clock
}

// Decode appends the mutations of a record to dst. A fault says what was left out: the whole record
// if no mutation was appended, else some of its edges.
func (d *Decoder) Decode(r Record, dst []mutation.Mutation) ([]mutation.Mutation, *Fault) {
	if d.changes != nil {
		return d.decodeChange(r, dst)
	}
	if fault := d.checkSize(r.Value); fault != nil {
		return dst, fault
	}
	m, fault := d.idAndVersion(r, r.Value == nil)
	if fault == nil {
		fault = d.withheld()
	}
	switch {
	case fault != nil:
		return dst, fault
	case d.attributesAlone:
		return d.attributesStated(m, r.Value == nil, dst)
	case r.Value == nil:
		return d.gone(m, dst)
	}
	return d.stated(m, dst)
}

func (d *Decoder) checkSize(v []byte) *Fault {
	if len(v) > d.limits.RecordBytes {
		return faultf(RecordTooLarge, "the value has %d bytes; the limit is %d", len(v), d.limits.RecordBytes)
	}
	return nil
}

// stated is what a value says.
func (d *Decoder) stated(m mutation.Mutation, dst []mutation.Mutation) ([]mutation.Mutation, *Fault) {
	deleted, fault := d.deleted()
	switch {
	case fault != nil:
		return dst, fault
	case d.edges:
		return d.edgeOps(m, deleted, dst)
	case d.orders != nil:
		return d.order(m, deleted, dst)
	case deleted:
		return d.nodeGone(m, dst), nil
	default:
		return d.node(m, dst)
	}
}

// attributesStated is what a record says on a topic of attributes alone.
func (d *Decoder) attributesStated(m mutation.Mutation, gone bool, dst []mutation.Mutation) (
	[]mutation.Mutation, *Fault) {
	m.Op = mutation.SetAttributes
	if len(d.attributes) > 0 {
		m.Attributes = mutation.NoAttributes
	}
	if len(d.attributes) > 0 && !gone {
		var fault *Fault
		if m.Attributes, fault = d.attributeObject(); fault != nil {
			return dst, fault
		}
	}
	if fault := d.stateVectors(&m, gone); fault != nil {
		return dst, fault
	}
	return append(dst, m), nil
}

// nodeGone is what a record says of a node that is gone. The node record's vectors go with it.
func (d *Decoder) nodeGone(m mutation.Mutation, dst []mutation.Mutation) []mutation.Mutation {
	m.Op, m.HasVectors = mutation.DeleteNode, len(d.vectors) > 0
	return append(dst, m)
}

// gone is what a null value says.
func (d *Decoder) gone(m mutation.Mutation, dst []mutation.Mutation) ([]mutation.Mutation, *Fault) {
	switch {
	case d.orders != nil:
		return d.orderGone(m, dst)
	case !d.edges:
		return d.nodeGone(m, dst), nil
	case len(d.keyEnds) > 0 && d.kinds.path != "":
		return dst, faultf(BadKind, "the record takes an edge back and does not say its kind; delete it by a record "+
			"with a value (ingest.edges.deleted)")
	case len(d.keyEnds) > 0: // the row of one edge, not all of its source
		m.Kind = d.kinds.constant
		return d.eachEdge(mutation.DeleteEdge, m, d.keyEnds, dst)
	case d.rank != uint8(mutation.Edges): // it would clear the lists of other topics, too
		return dst, faultf(BadKind, "a null value takes all edges of a source back, and only the topic of "+
			"kafka.topics.edges can; delete each by a record with a value (ingest.edges.deleted)")
	default:
		m.Op = mutation.ClearEdges
	}
	return append(dst, m), nil
}

// idAndVersion scans the value, which may be null, and finds the id and the version. gone: the record says that a
// node or an edge is gone, whatever its value.
func (d *Decoder) idAndVersion(r Record, gone bool) (mutation.Mutation, *Fault) {
	m := mutation.Mutation{Version: mutation.Version{EventTime: micros(r.Time), Rank: d.rank, Offset: r.Offset}}
	d.wasGone = gone
	d.scan.reset(nil)
	if r.Value != nil {
		if fault := d.scanRow(r.Value); fault != nil {
			return m, fault
		}
		d.tally.count(d, 1)
	}
	id, fault := d.id(r.Key)
	if fault != nil {
		return m, fault
	}
	m.ID = id
	if p := client.Partition([]byte(id), d.shards); p != r.Partition {
		return m, faultf(KeyMismatch, "the id %s belongs in partition %d of %d, the record is in partition %d; "+
			"produce it with the id as the key and the murmur2 partitioner",
			quote(id), p, d.shards, r.Partition)
	}
	if r.Override != nil {
		m.Version.EventTime = *r.Override
		return m, nil
	}
	t, ok, fault := d.eventTime()
	switch {
	case gone: // the row before a deletion has the time of its last update, if any
		if ok && fault == nil {
			m.Version.EventTime = max(m.Version.EventTime, t)
		}
	case fault != nil:
		return m, fault
	case ok:
		m.Version.EventTime = t
	}
	return m, d.tooFarAhead(m.Version.EventTime)
}

func (d *Decoder) tooFarAhead(eventTime int64) *Fault {
	if d.maxFuture == 0 {
		return nil
	}
	now := d.clock()
	if eventTime <= now.Add(d.maxFuture).UnixMicro() {
		return nil
	}
	return faultf(FutureTime, "the event time %s is later than the clock, %s, by more than %v (ingest.max_future)",
		time.UnixMicro(eventTime).UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), d.maxFuture)
}

// id returns the id (source) from the value or else from the key.
func (d *Decoder) id(key []byte) (string, *Fault) {
	d.keyEnds = nil
	if d.orders.joins() && len(d.scan.data) > 0 {
		return d.joinedID(d.changes != nil && d.wasGone)
	}
	v, ok := d.one(slotID)
	if !ok || d.changes != nil && d.wasGone && placeholder(v) {
		return d.KeyID(key)
	}
	if d.edges {
		return d.idOf(v, "src")
	}
	return d.idOf(v, "id")
}

func (d *Decoder) idOf(v value, field string) (string, *Fault) {
	if v.misplaced {
		return "", misplaced(v, field)
	}
	switch v.kind {
	case kindString:
		return checkID(d.text(v), field)
	case kindNumber:
		if n := integral(v.raw); !bytes.ContainsAny(n, ".eE") {
			return checkID(string(n), field)
		}
		return "", faultf(BadType, "%s is %s; ids are strings or integers, and a number with an exponent may stand "+
			"for several", field, quote(string(v.raw)))
	}
	return "", faultf(BadType, "%s is %s; ids are strings or integers", field, v.kind)
}

// misplaced is the fault of a value that a path cannot enter. To take it for an absent one would delete what the
// record does not mean to.
func misplaced(v value, field string) *Fault {
	what := v.kind.String()
	if v.kind == kindString && len(v.raw) > 0 {
		what += " " + quote(string(v.raw))
	}
	return faultf(BadType, "the path of the %s goes on where the value has %s; map the path as the values have it, or "+
		"send a list or an object there", field, what)
}

// integral returns a number without a fraction of zeros, and -0 as 0: pandas writes the integers of a
// column with gaps as 1.0, 2.0. Other numbers are returned as they are.
func integral(number []byte) []byte {
	whole, fraction, _ := bytes.Cut(number, []byte{'.'})
	switch {
	case len(bytes.Trim(fraction, "0")) > 0:
		return number
	case string(whole) == "-0":
		return whole[1:]
	}
	return whole
}

func checkID(id, field string) (string, *Fault) {
	switch {
	case id == "":
		return "", faultf(BadID, "%s is empty", field)
	case len(id) > MaxIDBytes:
		return "", faultf(BadID, "%s has %d bytes; the limit is %d", field, len(id), MaxIDBytes)
	case bytes.IndexByte([]byte(id), 0) >= 0:
		return "", faultf(BadID, "%s contains NUL", field)
	}
	return id, nil
}

// one returns the last value captured for a slot: of a repeated field the last one counts.
func (d *Decoder) one(s slot) (value, bool) {
	c := d.scan.captured[s]
	if len(c) == 0 {
		return value{}, false
	}
	return c[len(c)-1], true
}

// text returns a captured string without its escapes.
func (d *Decoder) text(v value) string {
	if !v.escaped {
		return string(v.raw)
	}
	d.buf = unescape(d.buf[:0], v.raw)
	return string(d.buf)
}

// node completes a PutNode.
func (d *Decoder) node(m mutation.Mutation, dst []mutation.Mutation) ([]mutation.Mutation, *Fault) {
	m.Op = mutation.PutNode
	var fault *Fault
	if m.Text, fault = d.joinText(); fault != nil {
		return dst, fault
	}
	if m.Class, fault = d.class(); fault != nil {
		return dst, fault
	}
	if len(d.attributes) > 0 {
		if m.Attributes, fault = d.attributeObject(); fault != nil {
			return dst, fault
		}
	}
	if fault = d.stateVectors(&m, false); fault != nil {
		return dst, fault
	}
	if len(d.ends) > 0 {
		var refused bool
		if fault, refused = d.listEdges(&m); refused {
			return dst, fault
		}
	}
	return append(dst, m), fault
}

// joinText joins the text pieces by newlines, in the order of the mapping.
func (d *Decoder) joinText() (string, *Fault) {
	if d.texts == 1 && !d.strip {
		if c := d.scan.captured[slotText]; len(c) == 1 && c[0].kind == kindString && !c[0].escaped {
			return d.checkText(c[0].raw) // without a copy on the way
		}
	}
	b := d.buf[:0]
	for i := range d.texts {
		for _, v := range d.scan.captured[int(slotText)+i] {
			if v.kind != kindString && v.kind != kindNumber {
				return "", faultf(BadType, "text is %s; it must be a string, a number or a list of those", v.kind)
			}
			if len(v.raw) == 0 {
				continue
			}
			before := len(b)
			if before > 0 {
				b = append(b, '\n')
			}
			start := len(b)
			switch {
			case d.strip && v.escaped:
				d.html = unescape(d.html[:0], v.raw)
				b = appendStripped(b, d.html)
			case d.strip:
				b = appendStripped(b, v.raw)
			case v.escaped:
				b = unescape(b, v.raw)
			default:
				b = append(b, v.raw...)
			}
			if d.strip && len(b) == start {
				b = b[:before] // markup alone
			}
		}
	}
	d.buf = b
	return d.checkText(b)
}

func (d *Decoder) checkText(b []byte) (string, *Fault) {
	if len(b) > d.limits.TextBytes {
		return "", faultf(TextTooLarge, "the text has %d bytes; the limit is %d", len(b), d.limits.TextBytes)
	}
	return string(b), nil
}

func (d *Decoder) class() (string, *Fault) {
	v, ok := d.one(slotClass)
	if !ok {
		return "", nil
	}
	var class string
	switch v.kind {
	case kindString:
		class = d.text(v)
	case kindNumber:
		class = string(v.raw)
	case kindTrue, kindFalse:
		class = v.kind.String()
	default:
		return "", faultf(BadType, "class is %s; it must be a string, a number or a boolean", v.kind)
	}
	if len(class) > MaxIDBytes {
		return "", faultf(TextTooLarge, "the class has %d bytes; the limit is %d", len(class), MaxIDBytes)
	}
	return class, nil
}

// quote quotes a piece of the input for a message, shortened.
func quote(s string) string {
	if len(s) > 64 {
		return fmt.Sprintf("%.60q…", s)
	}
	return fmt.Sprintf("%q", s)
}
