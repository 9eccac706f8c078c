package decode

import "sync/atomic"

// Field is a mapped field of a topic's values.
type Field struct {
	// Name in the configuration, such as nodes.text.
	Name string
	// Path in the values.
	Path string

	slot slot
	// living: a value that only says that something is deleted does not need the field.
	living bool
	// column is the position at the root of the field that the path begins with.
	column int
}

// Fields returns the mapped fields of a decoder, in the order of the mapping.
func (d *Decoder) Fields() []Field { return d.fields }

// Tally counts in how many values each mapped field was found. It is safe for concurrent use, so
// that the decoders of all shards can share one.
type Tally struct {
	records   atomic.Int64
	deletions atomic.Int64   // of the records
	filled    []atomic.Int64 // by position in Fields
}

// Filled is in how many of the records that need it a field was found, with a value that is neither
// null nor empty.
type Filled struct {
	Field   string `json:"field"`
	Path    string `json:"path"`
	Records int64  `json:"records"`
	Filled  int64  `json:"filled"`
}

// CountInto makes the decoder count into a tally that was made for the same mapping, nil for none.
// Values that are no JSON objects are not counted.
func (d *Decoder) CountInto(t *Tally) { d.tally = t }

// NewTally returns a tally of the decoder's fields.
func (d *Decoder) NewTally() *Tally { return &Tally{filled: make([]atomic.Int64, len(d.fields))} }

// Fields returns what was counted for each of the decoder's fields.
func (t *Tally) Fields(d *Decoder) []Filled {
	out := make([]Filled, len(d.fields))
	for i, f := range d.fields {
		// A record is counted before its fields are, so no rate is above 1.
		filled, deletions := t.filled[i].Load(), t.deletions.Load()
		out[i] = Filled{Field: f.Name, Path: f.Path, Filled: filled, Records: t.records.Load()}
		if f.living {
			out[i].Records -= deletions
		}
	}
	return out
}

// Uncount takes the value that was decoded or routed last out of the tally again.
func (d *Decoder) Uncount() { d.tally.count(d, -1) }

func (t *Tally) count(d *Decoder, n int64) {
	if t == nil {
		return
	}
	t.records.Add(n)
	deletion, _ := d.deleted()
	deletion = deletion || d.wasGone
	if deletion {
		t.deletions.Add(n)
	}
	for i, f := range d.fields {
		if deletion && f.living {
			continue
		}
		if d.scan.filled(f.slot) {
			t.filled[i].Add(n)
		}
	}
}

// filled reports whether a slot has a value at the end of its path that is no empty string.
func (s *scanner) filled(at slot) bool {
	for _, v := range s.captured[at] {
		if !v.misplaced && (v.kind != kindString || len(v.raw) > 0) {
			return true
		}
	}
	return false
}

// Textless reports whether the value that was decoded or routed last is the record of a node, and has no text. A
// deletion needs none, nor do edges, orders and records of attributes alone.
func (d *Decoder) Textless() bool {
	if d.edges || d.orders != nil || d.attributesAlone {
		return false
	}
	if deleted, fault := d.deleted(); deleted || fault != nil || d.wasGone {
		return false
	}
	for i := range d.texts {
		if d.scan.filled(slotText + slot(i)) {
			return false
		}
	}
	return true
}
