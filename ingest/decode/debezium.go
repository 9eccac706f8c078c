package decode

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"giantstream/stream/mutation"
)

// changeReader reads the change events of Debezium, which say what has become of a row of a table:
//
//	{"before": {…}, "after": {…}, "source": {"ts_us": …, "table": …}, "op": "u", "ts_ms": …}
//
// Kafka Connect's JsonConverter puts them beside their schema, unless schemas.enable is false:
// {"schema": {…}, "payload": {"before": …}}.
//
// https://debezium.io/documentation/reference/stable/connectors/postgresql.html#postgresql-events
type changeReader struct {
	root *pathNode
	scan scanner
}

// Where changeReader's scanner puts what it finds.
const (
	changeAfter slot = iota
	changeBefore
	changeOp
	changeMillis
	commitMicros
	commitMillis
	changeTable
	changeSchema
	changeSlots
)

// change is what an event says.
type change struct {
	// row after the change; of a deletion the row before, nil if the event lacks it.
	row []byte
	// before is the row before an update, nil if the event lacks it.
	before []byte
	// schema beside the event, nil if there is none.
	schema  []byte
	deletes bool
	// processed is when Debezium has read the change, and committed when the database has committed it.
	// Both are in microseconds and 0 if the event lacks them.
	processed, committed int64
}

func newChangeReader() *changeReader {
	var fields []mappedField
	for path, s := range map[string]slot{"after": changeAfter, "before": changeBefore, "op": changeOp,
		"ts_ms": changeMillis, "source.ts_us": commitMicros, "source.ts_ms": commitMillis,
		"source.table": changeTable} {
		fields = append(fields, mappedField{path: path, slot: s}, mappedField{path: "payload." + path, slot: s})
	}
	root, err := compile(append(fields, mappedField{path: "schema", slot: changeSchema}))
	if err != nil {
		panic(err) // the paths are constants
	}
	return &changeReader{root: root,
		scan: scanner{captured: make([][]value, changeSlots), listed: make([]bool, changeSlots)}}
}

// insideChange reports whether a path leads into the row of a change event, and by which path it would
// lead there from the row.
func insideChange(path string) (rest string, ok bool) {
	rest = strings.TrimPrefix(path, "payload.")
	rest, ok = strings.CutPrefix(rest, "after.")
	return rest, ok
}

// read reads an event.
func (r *changeReader) read(event []byte) (c change, fault *Fault) {
	if event, fault = withoutHeader(event); fault != nil {
		return c, fault
	}
	if !utf8.Valid(event) {
		return c, faultf(BadUTF8, "the value is not valid UTF-8 at byte %d", firstInvalid(event))
	}
	r.scan.reset(event)
	switch err := r.scan.scan(r.root); {
	case errors.Is(err, errSurrogate):
		return c, faultf(BadUTF8, "%v", err)
	case err != nil:
		return c, faultf(BadJSON, "%v", err)
	}
	op, _ := r.last(changeOp)
	c.processed, c.committed = r.integer(changeMillis)*1e3, r.integer(commitMicros)
	if c.committed == 0 {
		c.committed = r.integer(commitMillis) * 1e3
	}
	switch {
	case op.kind != kindString || len(op.raw) == 0:
		return c, faultf(BadChange, "the value has no op, so it is no change event of Debezium; for rows that "+
			"ExtractNewRecordState has flattened set format: json or avro, and deleted: __deleted")
	case string(op.raw) == "t":
		table, _ := r.last(changeTable)
		return c, faultf(Truncated, "the table %s was truncated, and nothing is deleted: the event names no row. "+
			"Delete what is gone by a full export (backfill --snapshot), and have Debezium skip such events "+
			"(skipped.operations=t)", quote(string(table.raw)))
	case len(op.raw) != 1 || strings.IndexByte("crud", op.raw[0]) < 0:
		return c, faultf(BadChange, "op is %s; it must be c, r, u or d", quote(string(op.raw)))
	}
	c.row, c.before, c.schema = r.row(changeAfter), r.row(changeBefore), r.row(changeSchema)
	if c.deletes = op.raw[0] == 'd'; c.deletes {
		c.row, c.before = c.before, nil
	} else if c.row == nil {
		return c, faultf(BadChange, "op is %s, and after is no object; events of MongoDB need "+
			"ExtractNewDocumentState, and format: json or avro", op.raw)
	}
	return c, nil
}

func (r *changeReader) last(s slot) (value, bool) {
	c := r.scan.captured[s]
	if len(c) == 0 {
		return value{}, false
	}
	return c[len(c)-1], true
}

// row returns the bytes of an object, nil if there is none.
func (r *changeReader) row(s slot) []byte {
	v, ok := r.last(s)
	if !ok || v.kind != kindObject {
		return nil
	}
	return v.raw
}

func (r *changeReader) integer(s slot) int64 {
	v, _ := r.last(s)
	n, err := strconv.ParseInt(string(v.raw), 10, 64)
	if v.kind != kindNumber || err != nil || n < 0 || n > maxTime {
		return 0
	}
	return n
}

// Enclose returns a row, as files have it, in the form of the topic: of change events, one that says that
// the row is there (as Debezium writes rows of its snapshots). A value in that form already is returned as
// it is.
func (d *Decoder) Enclose(v []byte) []byte {
	if d.changes == nil || v == nil || d.isChange(v) {
		return v
	}
	return enclose(v)
}

func enclose(row []byte) []byte {
	return slices.Concat([]byte(`{"op":"r","after":`), row, []byte("}"))
}

// isChange reports whether a value is a change event, good or bad, and no row that has a column op.
func (d *Decoder) isChange(v []byte) bool {
	_, _ = d.changes.read(v)
	_, timed := d.changes.last(changeMillis)
	return timed || d.changes.row(changeAfter) != nil || d.changes.row(changeBefore) != nil
}

// Row returns the row that a value states, for people to look at: of a change event the one after it, or of a
// deletion the one before.
func (d *Decoder) Row(v []byte) []byte {
	if d.changes == nil || v == nil {
		v, _ = withoutHeader(v)
		return v
	}
	c, _ := d.changes.read(v)
	return c.row
}

// unavailable is what Debezium writes for a large value that PostgreSQL keeps beside the row and has not
// logged, because an update did not change it.
const unavailable = "__debezium_unavailable_value"

// withheld is the fault of a row that lacks a value which it needs. It looks at flattened rows (ExtractNewRecordState),
// too: the placeholder is nobody's text.
func (d *Decoder) withheld() *Fault {
	for s := range d.scan.captured {
		for _, v := range d.scan.captured[s] {
			if v.kind == kindString && string(v.raw) == unavailable {
				if deleted, _ := d.deleted(); deleted && d.living(slot(s)) { // its fault is found again
					break
				}
				return faultf(BadChange, "a mapped column has not changed and is not in the event (%s); give the "+
					"table REPLICA IDENTITY FULL, so that events have all columns", unavailable)
			}
		}
	}
	return nil
}

// lacksColumn is the fault of a row without a column that the mapping reads. Debezium sends all columns of a row, null
// ones too, so a column that is absent was renamed, dropped or excluded. To take it for null would take back what
// earlier rows have given. An absent id has a fault of its own, and a condition may name a column of few tables.
func (d *Decoder) lacksColumn() *Fault {
	deleted, _ := d.deleted()
	for _, f := range d.fields {
		switch {
		case d.scan.present[f.column], f.Name == d.fields[0].Name, f.slot >= d.firstCondition, deleted && f.living,
			f.slot == slotClass && d.usualClass:
			continue
		}
		return faultf(BadChange, "the row has no column %s (ingest.%s), so it was renamed, dropped or excluded in the "+
			"source; what is stored stays: correct the mapping, then run giantstream dlq replay",
			quote(d.root.fields[f.column].name), f.Name)
	}
	return nil
}

// decodeChange is Decode for a change event.
func (d *Decoder) decodeChange(r Record, dst []mutation.Mutation) ([]mutation.Mutation, *Fault) {
	if r.Value == nil {
		// The tombstone after a deletion, for the compaction of the topic. The deletion has said it, with
		// its time; the tombstone has only its own, which may be later than that of the row's return.
		return dst, nil
	}
	if fault := d.checkSize(r.Value); fault != nil {
		return dst, fault
	}
	c, fault := d.changes.read(r.Value)
	if fault != nil {
		return dst, fault
	}
	d.types.use(c.schema, d.root, len(d.scan.captured))
	prior, fault := d.rowBefore(&c)
	if fault != nil {
		return dst, fault
	}
	r.Value, r.Time = c.row, d.timeOf(&c, r.Time)
	m, fault := d.idAndVersion(r, c.deletes)
	switch {
	case fault != nil:
		return dst, fault
	case c.deletes:
		return d.rowGone(m, dst)
	}
	if fault = d.withheld(); fault != nil {
		return dst, fault
	}
	if c.processed != 0 { // rows that we have enclosed have the columns that their file has
		if fault = d.lacksColumn(); fault != nil {
			return dst, fault
		}
	}
	if prior.id != "" && prior.id != m.ID {
		fault = faultf(IDChanged, "the id of the row has changed from %s to %s: %s is stated, and %s stays as it was, "+
			"because its deletion may belong in another partition; delete it by a record of its own",
			quote(prior.id), quote(m.ID), quote(m.ID), quote(prior.id))
	}
	before := len(dst)
	if fault == nil && d.edges && d.mode == Add {
		if dst, fault = d.takeBack(m, &prior, dst); fault != nil {
			return dst, fault
		}
	}
	if fault == nil && d.orders != nil && d.mode == Add {
		if dst, fault = d.takeBackItems(m, prior.ends, dst); fault != nil {
			return dst, fault
		}
	}
	takenBack := len(dst)
	dst, worse := d.stated(m, dst)
	switch {
	case worse == nil:
		return dst, fault
	case len(dst) == takenBack: // what cannot be read says nothing of what was there before either
		dst = dst[:before]
	}
	return dst, worse
}

// timeOf is the time of a change that is not mapped: when Debezium has read it. That follows the order of
// the topic, as the time of the commit does not: rows of incremental snapshots have that of their reading,
// and rows of MySQL that of the statement's start. Where the mapping has a time of the database, though, a
// deletion needs one of the same clock.
func (d *Decoder) timeOf(c *change, recorded time.Time) time.Time {
	us := c.processed
	if c.deletes && d.timed && c.committed != 0 {
		us = c.committed
	}
	if us == 0 {
		return recorded
	}
	return time.UnixMicro(us)
}

// priorRow is what a row was before an update.
type priorRow struct {
	id   string
	ends []value
	kind mutation.Kind // of the edges
}

// rowBefore reads the row before an update, as far as the event has it.
func (d *Decoder) rowBefore(c *change) (p priorRow, fault *Fault) {
	if c.before == nil {
		return p, nil
	}
	if fault := d.scanRow(c.before); fault != nil {
		return p, fault
	}
	if d.orders.joins() {
		p.id, _ = d.joinedID(true)
	} else if v, ok := d.one(slotID); ok && !placeholder(v) {
		p.id, _ = d.idOf(v, "id")
	}
	if d.edges {
		p.kind, _ = d.kind()
	}
	for _, v := range d.scan.captured[slotEnds] {
		if !v.misplaced && !placeholder(v) {
			p.ends = append(p.ends, v)
		}
	}
	return p, nil
}

// placeholder reports whether a value in a row before a change may stand for one that the event lacks: of
// PostgreSQL's tables without REPLICA IDENTITY FULL, columns that are not in the primary key and not null
// are empty or 0, and a UUID is zeros.
func placeholder(v value) bool {
	const noUUID = "00000000-0000-0000-0000-000000000000"
	return v.kind == kindString && (len(v.raw) == 0 || string(v.raw) == noUUID) ||
		v.kind == kindNumber && string(integral(v.raw)) == "0"
}

// takeBack takes back the edges that an updated row no longer states.
func (d *Decoder) takeBack(m mutation.Mutation, prior *priorRow, dst []mutation.Mutation) (
	[]mutation.Mutation, *Fault) {
	kind, fault := d.kind()
	if fault != nil {
		return dst, fault
	}
	var gone []value
	for _, was := range prior.ends {
		if kind != prior.kind || !containsValue(d.scan.captured[slotEnds], was) {
			gone = append(gone, was)
		}
	}
	m.Kind = prior.kind
	return d.eachEdge(mutation.DeleteEdge, m, gone, dst)
}

func containsValue(values []value, v value) bool {
	for _, other := range values {
		if other.kind == v.kind && bytes.Equal(other.raw, v.raw) {
			return true
		}
	}
	return false
}

// rowGone is what an event says of a deleted row.
func (d *Decoder) rowGone(m mutation.Mutation, dst []mutation.Mutation) ([]mutation.Mutation, *Fault) {
	ends := d.scan.captured[slotEnds]
	switch {
	case d.orders != nil:
		return d.orderRowGone(m, dst)
	case !d.edges:
		return d.nodeGone(m, dst), nil
	case d.mode == Replace, d.scan.listed[slotEnds] && len(ends) == 0: // the latter is what Clear writes
		m.Op = mutation.ClearEdges
		return append(dst, m), nil
	}
	if len(ends) == 0 {
		ends = d.keyEnds
	}
	if v, ok := d.one(slotKindOfEdge); d.kinds.path != "" && (!ok || placeholder(v)) {
		return dst, faultf(BadKind, "the event of a deleted row lacks the kind of the edge (ingest.edges.kind); give "+
			"the table REPLICA IDENTITY FULL, so that events have all columns")
	}
	var fault *Fault
	if m.Kind, fault = d.kind(); fault != nil {
		return dst, fault
	}
	if len(ends) == 0 || placeholder(ends[0]) {
		return dst, faultf(MissingDst, "the row of an edge was deleted, and neither the row before nor the key says "+
			"which edge; give the table REPLICA IDENTITY FULL, or a primary key of both ends")
	}
	return d.eachEdge(mutation.DeleteEdge, m, ends, dst)
}
