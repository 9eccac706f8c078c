package decode

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"

	"giantstream/ingest/jsonvalue"
)

// connectSchema is the schema that Kafka Connect's JsonConverter writes beside a value. It has what JSON itself cannot
// state: decimals are the base64 of their unscaled number, and dates and times are integers.
type connectSchema struct {
	Type       string
	Name       string // of a logical type
	Field      string // of a struct that this is the type of
	Parameters struct{ Scale string }
	Fields     []connectSchema // of a struct
	Items      *connectSchema  // of an array
}

// connectTypes gives captured values the meaning that the schema beside a row states.
type connectTypes struct {
	// text of the schema that types come from, which most rows share with the row before.
	text  []byte
	types []*connectSchema // by slot; nil where a value is what it looks like
}

// use makes the schema of an event, nil for none, that of the rows that are scanned next.
func (c *connectTypes) use(text []byte, root *pathNode, slots int) {
	if bytes.Equal(text, c.text) {
		return
	}
	c.text, c.types = bytes.Clone(text), nil
	var event connectSchema
	if len(text) == 0 || json.Unmarshal(text, &event) != nil {
		return
	}
	c.types = make([]*connectSchema, slots)
	for i := range event.Fields { // before and after have the same
		if event.Fields[i].Field == "after" {
			c.follow(root, &event.Fields[i])
		}
	}
}

// follow finds the types of what the paths below n lead to, in a value with this schema.
func (c *connectTypes) follow(n *pathNode, s *connectSchema) {
	for _, e := range n.ends {
		if s.Name != "" {
			c.types[e.slot] = s
		}
	}
	for _, f := range n.fields {
		for i := range s.Fields {
			if s.Fields[i].Field == f.name {
				c.follow(f.node, &s.Fields[i])
			}
		}
	}
	if s.Items == nil {
		return
	}
	for _, x := range n.indexed {
		c.follow(x.node, s.Items)
	}
	if n.elem != nil {
		c.follow(n.elem, s.Items)
	}
}

// apply replaces what was captured by what it means.
func (c *connectTypes) apply(captured [][]value) {
	for slot, s := range c.types {
		if s == nil {
			continue
		}
		for i, v := range captured[slot] {
			if b := s.meaning(v); len(b) > 0 {
				captured[slot][i] = written(v, b)
			}
		}
	}
}

// meaning returns as JSON what a value means, nothing for one that means what it is. That is also a decimal that the
// converter has written as a number (decimal.format=NUMERIC).
func (s *connectSchema) meaning(v value) []byte {
	switch {
	case s.Name == "org.apache.kafka.connect.data.Decimal" && v.kind == kindString:
		scale, err := strconv.Atoi(s.Parameters.Scale)
		unscaled, bad := base64.StdEncoding.DecodeString(string(v.raw))
		if err == nil && bad == nil && len(unscaled) > 0 {
			return jsonvalue.AppendLongDecimal(nil, unscaled, scale)
		}
	case s.Name == "io.debezium.data.VariableScaleDecimal" && v.kind == kindObject:
		var d struct {
			Scale int
			Value []byte
		}
		if json.Unmarshal(v.raw, &d) == nil && len(d.Value) > 0 {
			return jsonvalue.AppendLongDecimal(nil, d.Value, d.Scale)
		}
	case v.kind == kindNumber:
		if n, err := strconv.ParseInt(string(v.raw), 10, 64); err == nil {
			b, _ := jsonvalue.AppendLogical(nil, s.Name, n)
			return b
		}
	}
	return nil
}

// written is the value v in another way, as jsonvalue has written it.
func written(v value, b []byte) value {
	v.kind, v.raw, v.escaped = kindNumber, b, false
	switch b[0] {
	case '"':
		v.kind, v.raw = kindString, b[1:len(b)-1]
	case '{':
		v.kind = kindObject
	}
	return v
}

// suspectDecimal adds what to do to the fault of what may be a decimal without its schema.
func (d *Decoder) suspectDecimal(v value, fault *Fault) *Fault {
	if d.changes != nil && v.kind == kindString {
		if _, err := base64.StdEncoding.DecodeString(string(v.raw)); err == nil {
			fault.Message += "; if that is a decimal, set decimal.handling.mode=string of the connector, or of its " +
				"JsonConverter decimal.format=NUMERIC or schemas.enable=true"
		}
	}
	return fault
}
