package decode

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"giantstream/stream/mutation"
)

// Attribute is a field that is carried beside a node's text and never embedded, such as a price.
type Attribute struct {
	Name string
	Type AttributeType
	Path string // as in Mapping
	// Comma: a text has a decimal comma, as in 1.234,50, and is a Number.
	Comma bool
}

// AttributeType says what the values of an attribute are.
type AttributeType string

// The types of attributes.
const (
	Number  AttributeType = "number"
	Boolean AttributeType = "boolean"
	String  AttributeType = "string"
	Strings AttributeType = "strings" // a list
	Time    AttributeType = "time"    // as an event time
)

// decimalComma is what a mapping calls a Number with a decimal comma.
const decimalComma AttributeType = "decimal-comma"

// Bounds of attributes.
const (
	// MaxAttributes bounds the attributes of one input.
	MaxAttributes = 64
	// MaxAttributeBytes bounds what a record gives a node, as JSON.
	MaxAttributeBytes = 4 << 10
)

// AttributesMapping maps the values of a topic that has attributes or vectors of nodes and nothing else.
type AttributesMapping struct {
	// ID of the node; a value without one takes the record's key.
	ID string
	// EventTime as in NodeMapping.
	EventTime  string
	Attributes []Attribute
	Vectors    []Vector
}

// ParseAttribute parses NAME[:TYPE][=PATH]. The type is string and the path the name, unless given.
func ParseAttribute(s string) (a Attribute, err error) {
	named := splitOutside(s, "=")[0]
	name, kind, _ := strings.Cut(named, ":")
	a = Attribute{Name: name, Type: AttributeType(kind), Path: name}
	if kind == "" {
		a.Type = String
	}
	if named != s {
		a.Path = s[len(named)+1:]
	}
	known := []AttributeType{Number, decimalComma, Boolean, String, Strings, Time}
	switch {
	case name == "" || len(name) > 64 || strings.ContainsFunc(name, notInName):
		return a, fmt.Errorf("attribute %q: a name is 1 to 64 of A-Z, a-z, 0-9, _ and -; write NAME[:TYPE][=PATH], "+
			"such as %s:%s=%s", s, nameOfPath(a.Path), a.Type, cmp.Or(a.Path, "product.price"))
	case !slices.Contains(known, a.Type):
		return a, fmt.Errorf("attribute %q: %q is no type; there are %v", s, kind, known)
	case a.Type == decimalComma:
		a.Type, a.Comma = Number, true
	}
	if at := strings.LastIndexByte(a.Path, ':'); at >= 0 && slices.Contains(known, AttributeType(a.Path[at+1:])) {
		return a, fmt.Errorf("attribute %q: the type stands with the name: %s:%s=%s; a field of the name %q is "+
			"written [%[5]q]", s, name, a.Path[at+1:], a.Path[:at], a.Path)
	}
	_, err = ParsePath(a.Path)
	return a, err
}

// A number with a decimal comma, whose groups of three digits a dot, space or apostrophe may part.
var (
	withComma = regexp.MustCompile(`^[+-]?(\d+|\d{1,3}([.'’ \x{a0}\x{202f}]\d{3})+)(,\d+)?$`)
	groups    = regexp.MustCompile(`[.'’ \x{a0}\x{202f}]`)
	// either may be a thousand and more, too: 1,250.
	either = regexp.MustCompile(`^[+-]?[1-9]\d{0,2},\d{3}$`)
)

// pointed returns a number that matches withComma with a decimal point.
func pointed(text string) string {
	return strings.Replace(groups.ReplaceAllString(text, ""), ",", ".", 1)
}

// single reads a finite number of single precision, which may stand in a string, there with a decimal comma where
// that is no comma between thousands. like says how to write one that may be either.
func single(v value) (f float32, like string, ok bool) {
	text := string(bytes.TrimSpace(v.raw))
	switch {
	case v.kind != kindString || !withComma.MatchString(text) || !strings.Contains(text, ","):
	case either.MatchString(text):
		return 0, "; its comma may part decimals or thousands: write it with a decimal point, or without a comma", false
	default:
		text = pointed(text)
	}
	x, err := strconv.ParseFloat(text, 32)
	return float32(x), "", err == nil && !math.IsInf(x, 0) && !math.IsNaN(x)
}

// number reads a number as it is written, in a string of its own or not.
func (a *Attribute) number(text string, quoted bool) (float64, *Fault) {
	like := ""
	switch {
	case !a.Comma && withComma.MatchString(text):
		like = "; the type decimal-comma reads it"
	case a.Comma && quoted && !withComma.MatchString(text):
		return 0, faultf(BadType, "attribute %s is %s; it must be a number like 1.234,50", a.Name, quote(text))
	case a.Comma && quoted:
		text = pointed(text)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return 0, faultf(BadType, "attribute %s is %s; it must be a number%s", a.Name, quote(text), like)
	}
	return f, nil
}

// nameOfPath is a name for what stands at a path: the last of its keys.
func nameOfPath(path string) string {
	keys := strings.FieldsFunc(path, notInName)
	if len(keys) == 0 {
		return "price"
	}
	last := keys[len(keys)-1]
	return last[:min(len(last), 64)]
}

func notInName(r rune) bool {
	return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

// Attributes returns a decoder for a topic of attributes, which is an input of a pipeline with that many shards.
func Attributes(m AttributesMapping, in mutation.Input, l Limits, shards int) (*Decoder, error) {
	d := &Decoder{rank: uint8(in), attributesAlone: true}
	if m.ID == "" {
		return nil, errors.New("mapping of attributes.id: no path given")
	}
	if err := d.mapAttributes(m.Attributes); err != nil {
		return nil, fmt.Errorf("mapping of attributes.fields: %w", err)
	}
	if err := d.mapVectors(m.Vectors); err != nil {
		return nil, fmt.Errorf("mapping of attributes.vectors: %w", err)
	}
	return d, d.init(slices.Concat([]mappedField{
		{name: "attributes.id", path: m.ID, slot: slotID},
		{name: "attributes.event_time", path: m.EventTime, slot: slotTime},
	}, d.attributeFields("attributes.fields"), d.vectorFields("attributes.vectors")), "", "", l, shards)
}

// mapAttributes sets the attributes that records have, in the order in which they are written.
func (d *Decoder) mapAttributes(all []Attribute) error {
	d.attributes = slices.Clone(all)
	slices.SortFunc(d.attributes, func(a, b Attribute) int { return strings.Compare(a.Name, b.Name) })
	if len(all) > MaxAttributes {
		return fmt.Errorf("%d attributes; the limit is %d", len(all), MaxAttributes)
	}
	for i := 1; i < len(d.attributes); i++ {
		if name := d.attributes[i].Name; name == d.attributes[i-1].Name {
			return fmt.Errorf("attribute %s is given twice", name)
		}
	}
	return nil
}

// attributeFields are the fields of mapped attributes, which come after the pieces of text.
func (d *Decoder) attributeFields(name string) (fields []mappedField) {
	for i, a := range d.attributes {
		many := a.Type == Strings
		fields = append(fields, mappedField{name: name, path: a.Path, slot: d.attributeSlot(i), many: many})
	}
	return fields
}

func (d *Decoder) attributeSlot(i int) slot { return slotText + slot(d.texts+i) }

// attributeObject returns the record's attributes as a JSON object: names ascending, no spaces. An attribute that is
// absent, null or an empty string is left out.
func (d *Decoder) attributeObject() (string, *Fault) {
	d.object = append(d.object[:0], '{')
	b := d.object
	for i, a := range d.attributes {
		before := len(b)
		if before > 1 {
			b = append(b, ',')
		}
		b = appendJSONString(b, a.Name)
		b = append(b, ':')
		start := len(b)
		var fault *Fault
		if b, fault = d.appendAttribute(b, a, d.attributeSlot(i)); fault != nil {
			return "", fault
		}
		if len(b) == start {
			b = b[:before]
		}
	}
	b = append(b, '}')
	d.object = b
	if len(b) > MaxAttributeBytes {
		return "", faultf(AttributesTooLarge, "the attributes have %d bytes as JSON; the limit is %d", len(b),
			MaxAttributeBytes)
	}
	return string(b), nil
}

// appendAttribute appends the value of an attribute, nothing if there is none.
func (d *Decoder) appendAttribute(b []byte, a Attribute, s slot) ([]byte, *Fault) {
	if a.Type == Strings {
		return d.appendStrings(b, a, s)
	}
	v, ok := d.one(s)
	if !ok || v.kind == kindString && len(v.raw) == 0 {
		return b, nil
	}
	wrong := func() *Fault { return faultf(BadType, "attribute %s is %s; it must be a %s", a.Name, v.kind, a.Type) }
	switch a.Type {
	case Number:
		if v.kind != kindString && v.kind != kindNumber {
			return b, wrong()
		}
		f, fault := a.number(string(v.raw), v.kind == kindString)
		if fault != nil {
			return b, d.suspectDecimal(v, fault)
		}
		return appendJSONNumber(b, f), nil
	case Boolean:
		if is, ok := truth(v); ok {
			return strconv.AppendBool(b, is), nil
		}
		if v.kind == kindString || v.kind == kindNumber {
			return b, faultf(BadType, "attribute %s is %s; it must be true or false, 1 or 0; the type string keeps it "+
				"as it is", a.Name, quote(string(v.raw)))
		}
		return b, wrong()
	case Time:
		us, fault := d.microsOf(v)
		if fault != nil {
			return b, faultf(BadType, "attribute %s: %s", a.Name, fault.Message)
		}
		return time.UnixMicro(us).UTC().AppendFormat(b, `"2006-01-02T15:04:05.999999Z"`), nil
	}
	text, ok := d.plain(v)
	if !ok {
		return b, wrong()
	}
	return appendJSONString(b, text), nil
}

// truth reads a boolean. CSV has only strings, and MySQL has 1 and 0.
func truth(v value) (is, ok bool) {
	text := v.raw
	switch v.kind {
	case kindTrue, kindFalse:
		return v.kind == kindTrue, true
	case kindNumber:
		text = integral(v.raw) // pandas has 1.0 in a column with gaps
	case kindString:
	default:
		return false, false
	}
	switch strings.ToLower(string(text)) {
	case "true", "1":
		return true, true
	case "false", "0":
		return false, true
	}
	return false, false
}

// appendStrings appends the strings that are not empty, and nothing if there are none.
func (d *Decoder) appendStrings(b []byte, a Attribute, s slot) ([]byte, *Fault) {
	next := byte('[')
	for _, v := range d.scan.captured[s] {
		text, ok := d.plain(v)
		if !ok {
			return b, faultf(BadType, "attribute %s has %s; it must be a list of strings", a.Name, v.kind)
		}
		if text == "" {
			continue
		}
		b = appendJSONString(append(b, next), text)
		next = ','
	}
	if next == ',' {
		b = append(b, ']')
	}
	return b, nil
}

// plain returns a string, or a number or boolean as it was written.
func (d *Decoder) plain(v value) (string, bool) {
	switch v.kind {
	case kindString:
		if v.escaped {
			return string(unescape(nil, v.raw)), true
		}
		return string(v.raw), true
	case kindNumber:
		return string(v.raw), true
	case kindTrue, kindFalse:
		return v.kind.String(), true
	}
	return "", false
}

// appendJSONNumber appends the shortest number that reads as f.
func appendJSONNumber(b []byte, f float64) []byte {
	if size := math.Abs(f); size >= 1e21 || size > 0 && size < 1e-6 {
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(b, f+0, 'f', -1, 64) // 0 for -0
}

// appendJSONString appends a JSON string of valid UTF-8, with as few escapes as JSON allows.
func appendJSONString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20:
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
