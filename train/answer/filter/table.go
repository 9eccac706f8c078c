package filter

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// Type is what the values of an attribute are.
type Type string

// The types, by the names that they have where attributes are mapped.
const (
	Number  Type = "number"
	Boolean Type = "boolean"
	String  Type = "string"
	Strings Type = "strings" // a list
	Time    Type = "time"    // RFC 3339 in UTC, to the microsecond
)

// timeLayout is how rows have times.
const timeLayout = "2006-01-02T15:04:05.999999Z"

// Attribute is one that nodes can have.
type Attribute struct {
	Name string
	Type Type
}

// Table holds the attributes of nodes by number, a column for each attribute: 8 bytes a node for numbers and times, 4
// for all others, and each distinct string, list or boolean once; and a bit a node for each of the comparisons asked
// last, 16 of an attribute. It is not safe for changes beside other calls.
type Table struct {
	columns []*column // by name
}

// column has one of numbers and codes, as long as the highest number of a node with attributes says.
type column struct {
	Attribute
	numbers []float64 // NaN for none; times are microseconds since the Unix epoch
	codes   []uint32  // of entries, 0 for none
	entries []entry   // the first stands for none
	code    map[string]uint32
	unused  []uint32

	mu   sync.Mutex // of kept, whose sets only changes of attributes change
	kept []*kept    // comparisons, that asked last first
}

// entry is a value that some nodes have.
type entry struct {
	text  string   // of a list its JSON, by which it is found
	list  []string // of Strings
	nodes int
}

// NewTable returns an empty table. Attributes that are not among those given are not kept.
func NewTable(attributes []Attribute) *Table {
	t := &Table{}
	for _, a := range attributes {
		c := &column{Attribute: a}
		if !c.numeric() {
			c.entries, c.code = make([]entry, 1), map[string]uint32{}
		}
		t.columns = append(t.columns, c)
	}
	slices.SortFunc(t.columns, func(a, b *column) int { return strings.Compare(a.Name, b.Name) })
	return t
}

func (c *column) numeric() bool { return c.Type == Number || c.Type == Time }

// Empty says whether there are no attributes to keep.
func (t *Table) Empty() bool { return len(t.columns) == 0 }

// find returns a column, nil for none.
func (t *Table) find(name string) *column {
	i, ok := slices.BinarySearchFunc(t.columns, name, func(c *column, name string) int {
		return strings.Compare(c.Name, name)
	})
	if !ok {
		return nil
	}
	return t.columns[i]
}

// Row is the attributes of a node, as Decode reads them.
type Row []value // by column

// value is NaN and "" for none.
type value struct {
	number float64
	text   string
	list   []string
}

// Decode reads attributes as rows have them: a JSON object, "" for none. What is not of its type counts as none. It may
// be called beside changes.
func (t *Table) Decode(attributes string) (Row, error) {
	var all map[string]json.RawMessage
	if attributes != "" {
		if err := json.Unmarshal([]byte(attributes), &all); err != nil {
			return nil, err
		}
	}
	row := make(Row, len(t.columns))
	for i, c := range t.columns {
		row[i] = c.decode(all[c.Name])
	}
	return row, nil
}

func (c *column) decode(data json.RawMessage) value {
	none := value{number: math.NaN()}
	v := none
	if data == nil {
		return none
	}
	var to any = &v.text
	switch c.Type {
	case Number:
		to = &v.number
	case Strings:
		to, v.text = &v.list, string(data)
	case Boolean:
		to, v.text = new(bool), string(data)
	}
	if json.Unmarshal(data, to) != nil || string(data) == "null" {
		return none
	}
	if c.Type == Time {
		at, err := time.Parse(time.RFC3339, v.text)
		if err != nil {
			return none
		}
		v.number = float64(at.UnixMicro()) // exact for 285 years
	}
	return v
}

// Set gives node n the attributes of a row, and takes all others.
func (t *Table) Set(n int32, row Row) {
	for i, c := range t.columns {
		c.set(int(n), row[i])
	}
}

// Clear takes all attributes of node n.
func (t *Table) Clear(n int32) {
	for _, c := range t.columns {
		c.set(int(n), value{number: math.NaN()})
	}
}

func (c *column) set(n int, v value) {
	c.put(n, v)
	for _, k := range c.kept {
		k.update(c, n)
	}
}

func (c *column) put(n int, v value) {
	if c.numeric() {
		for len(c.numbers) <= n {
			c.numbers = append(c.numbers, math.NaN())
		}
		c.numbers[n] = v.number
		return
	}
	if n >= len(c.codes) {
		c.codes = append(c.codes, make([]uint32, n+1-len(c.codes))...)
	}
	before := c.codes[n]
	c.codes[n] = c.intern(v)
	if e := &c.entries[before]; before != 0 {
		if e.nodes--; e.nodes == 0 {
			delete(c.code, e.text)
			*e = entry{}
			c.unused = append(c.unused, before)
		}
	}
}

// intern returns the code of a value for one more node.
func (c *column) intern(v value) uint32 {
	if v.text == "" {
		return 0
	}
	code, known := c.code[v.text]
	if !known {
		code = uint32(len(c.entries))
		if n := len(c.unused); n > 0 {
			code, c.unused = c.unused[n-1], c.unused[:n-1]
		} else {
			c.entries = append(c.entries, entry{})
		}
		c.entries[code] = entry{text: v.text, list: v.list}
		c.code[v.text] = code
	}
	c.entries[code].nodes++
	return code
}

// Values returns the attributes of a node that are named, as JSON has them. What the node lacks is left out.
func (t *Table) Values(n int32, names []string) map[string]any {
	all := map[string]any{}
	for _, name := range names {
		if c := t.find(name); c != nil {
			if v := c.value(int(n)); v != nil {
				all[name] = v
			}
		}
	}
	return all
}

// value returns nil for none.
func (c *column) value(n int) any {
	if c.numeric() {
		switch {
		case n >= len(c.numbers) || math.IsNaN(c.numbers[n]):
			return nil
		case c.Type == Time:
			return time.UnixMicro(int64(c.numbers[n])).UTC().Format(timeLayout)
		}
		return c.numbers[n]
	}
	if n >= len(c.codes) || c.codes[n] == 0 {
		return nil
	}
	switch e := c.entries[c.codes[n]]; c.Type {
	case Boolean:
		return e.text == "true"
	case Strings:
		return e.list
	default:
		return e.text
	}
}
