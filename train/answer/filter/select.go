package filter

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"giantstream/internal/suggest"
)

// Set is some nodes by number: bit n%64 of word n/64.
type Set []uint64

// Has says whether node n is in the set.
func (s Set) Has(n int32) bool { return int(n/64) < len(s) && s[n/64]>>(n%64)&1 != 0 }

// Clear takes node n out of the set.
func (s Set) Clear(n int32) {
	if int(n/64) < len(s) {
		s[n/64] &^= 1 << (n % 64)
	}
}

// Len returns how many nodes are in the set.
func (s Set) Len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// Full returns the set of the first n nodes.
func Full(n int) Set {
	s := make(Set, (n+63)/64)
	for i := range s {
		s[i] = math.MaxUint64
	}
	if n%64 != 0 {
		s[n/64] = 1<<(n%64) - 1
	}
	return s
}

// Select returns which of the first n nodes match a filter: an Error for an attribute that does not exist, or is
// compared as its type is not. It reads the columns of the filter once, a few milliseconds per million nodes and
// comparison.
func (t *Table) Select(e *Expr, n int) (Set, error) {
	switch e.Op {
	case And, Or, Not:
		return t.combine(e, n)
	}
	c, err := t.column(e.Attribute, e.column)
	if err != nil {
		return nil, err
	}
	out := make(Set, (n+63)/64)
	if e.Op == Exists {
		out.fill(c, n)
		return out, nil
	}
	if c.numeric() {
		return out, c.selectNumbers(out, e)
	}
	accept, err := c.accepted(e)
	if err != nil {
		return nil, err
	}
	out.accept(c.codes, accept)
	return out, nil
}

func (t *Table) combine(e *Expr, n int) (Set, error) {
	out, err := t.Select(e.Of[0], n)
	if err != nil {
		return nil, err
	}
	if e.Op == Not {
		for i := range out {
			out[i] = ^out[i]
		}
		if n%64 != 0 {
			out[n/64] &= 1<<(n%64) - 1
		}
	}
	for _, one := range e.Of[1:] {
		more, err := t.Select(one, n)
		if err != nil {
			return nil, err
		}
		for i, word := range more {
			if e.Op == And {
				out[i] &= word
			} else {
				out[i] |= word
			}
		}
	}
	return out, nil
}

// column returns the column of an attribute.
func (t *Table) column(name string, at int) (*column, error) {
	if c := t.find(name); c != nil {
		return c, nil
	}
	if t.Empty() {
		return nil, fault(at, "there is no attribute %q: the pipeline maps none (ingest.nodes.attributes, --attribute)",
			name)
	}
	var names, said []string
	for _, c := range t.columns {
		names, said = append(names, c.Name), append(said, fmt.Sprintf("%s (%s)", c.Name, c.Type))
	}
	hint := ""
	if like := suggest.Nearest(name, names); like != "" {
		hint = fmt.Sprintf(" Did you mean %s?", like)
	}
	return nil, fault(at, "there is no attribute %q; there are %s.%s", name, strings.Join(said, ", "), hint)
}

// Check returns an Error for a name that no attribute has.
func (t *Table) Check(names []string) error {
	for _, name := range names {
		if _, err := t.column(name, Outside); err != nil {
			return err
		}
	}
	return nil
}

func (s Set) fill(c *column, n int) {
	accept := make([]uint64, len(c.entries))
	for i := range accept {
		accept[i] = min(uint64(i), 1)
	}
	s.accept(c.codes, accept)
	s.addRange(c.numbers, math.Inf(-1), math.Inf(1))
}

// accept adds the nodes whose code has a one.
func (s Set) accept(codes []uint32, accept []uint64) {
	for w := range s {
		if w*64 >= len(codes) {
			return
		}
		var bits uint64
		for i, code := range codes[w*64 : min(w*64+64, len(codes))] {
			bits |= accept[code] << (i & 63)
		}
		s[w] |= bits
	}
}

// addRange adds the nodes whose number is from lo to hi.
func (s Set) addRange(numbers []float64, lo, hi float64) {
	for w := range s {
		if w*64 >= len(numbers) {
			return
		}
		var bits uint64
		for i, v := range numbers[w*64 : min(w*64+64, len(numbers))] {
			var in, below uint64
			if v >= lo {
				in = 1
			}
			if v <= hi {
				below = 1
			}
			bits |= in & below << (i & 63)
		}
		s[w] |= bits
	}
}

// oneOf adds the nodes whose number is one of some, which ascend.
func (s Set) oneOf(numbers, some []float64) {
	for n, v := range numbers[:min(len(numbers), 64*len(s))] {
		if _, ok := slices.BinarySearch(some, v); ok {
			s[n/64] |= 1 << (n % 64)
		}
	}
}

// selectNumbers adds the nodes that match a comparison of numbers or times, which is one of ranges, ends included.
func (c *column) selectNumbers(out Set, e *Expr) error {
	var some []float64
	for _, v := range e.Values {
		x, err := c.numberOf(v, e)
		if err != nil {
			return err
		}
		some = append(some, x)
	}
	x := some[0]
	least, most := math.Inf(-1), math.Inf(1)
	below, above := math.Nextafter(x, least), math.Nextafter(x, most)
	switch e.Op {
	case Equal:
		out.addRange(c.numbers, x, x)
	case In:
		slices.Sort(some)
		out.oneOf(c.numbers, some)
	case Unequal:
		out.addRange(c.numbers, least, below)
		out.addRange(c.numbers, above, most)
	case Less:
		out.addRange(c.numbers, least, below)
	case AtMost:
		out.addRange(c.numbers, least, x)
	case More:
		out.addRange(c.numbers, above, most)
	case AtLeast:
		out.addRange(c.numbers, x, most)
	default:
		return c.wrong(e, "is compared by =, !=, <, <=, >, >=, in and exists")
	}
	return nil
}

func (c *column) numberOf(v any, e *Expr) (float64, error) {
	switch v := v.(type) {
	case float64:
		if c.Type == Number {
			return v, nil
		}
	case string:
		for _, layout := range []string{time.RFC3339, time.DateOnly} {
			if at, err := time.Parse(layout, v); err == nil && c.Type == Time {
				return float64(at.UnixMicro()), nil
			}
		}
	}
	if c.Type == Time {
		return 0, c.wrong(e, `is compared with times, as in %s>"2026-03-01" or "2026-03-01T10:00:00Z"`, c.Name)
	}
	return 0, c.wrong(e, "is compared with numbers, as in %s<50", c.Name)
}

func (c *column) wrong(e *Expr, format string, args ...any) error {
	return fault(e.column, "%s is of type %s, which "+format, append([]any{c.Name, c.Type}, args...)...)
}

// accepted returns a one for each code of a value that matches.
func (c *column) accepted(e *Expr) ([]uint64, error) {
	texts, err := c.textsOf(e)
	if err != nil {
		return nil, err
	}
	accept := make([]uint64, len(c.entries))
	compare := func(have, with string) bool { return have == with }
	switch {
	case c.Type != Strings && (e.Op == Equal || e.Op == In):
		for _, text := range texts {
			if code, ok := c.code[text]; ok {
				accept[code] = 1
			}
		}
		return accept, nil
	case c.Type != Strings && e.Op == Unequal:
		compare = func(have, with string) bool { return have != with }
	case c.Type == Boolean:
		return nil, c.wrong(e, "is compared by =, !=, in and exists")
	case e.Op == Begins:
		compare = strings.HasPrefix
	case e.Op == Contains && c.Type == String:
		compare = strings.Contains
	case e.Op == Contains:
	case c.Type == Strings:
		return nil, c.wrong(e, "is compared by contains (an element), ^= (how one begins) and exists")
	default:
		return nil, c.wrong(e, "is compared by =, !=, in, ^=, contains and exists")
	}
	match := func(have string) bool { return compare(have, texts[0]) }
	for i := range c.entries {
		if v := &c.entries[i]; v.nodes > 0 && v.anyElement(c.Type, match) {
			accept[i] = 1
		}
	}
	return accept, nil
}

// anyElement says whether f holds for the value, or for an element of a list.
func (v *entry) anyElement(t Type, f func(string) bool) bool {
	if t == Strings {
		return slices.ContainsFunc(v.list, f)
	}
	return f(v.text)
}

// textsOf returns the values of a comparison as entries have them.
func (c *column) textsOf(e *Expr) (texts []string, err error) {
	for _, v := range e.Values {
		switch v := v.(type) {
		case bool:
			if c.Type != Boolean {
				return nil, c.wrong(e, "is compared with strings, in quotes")
			}
			texts = append(texts, strconv.FormatBool(v))
		case string:
			if c.Type == Boolean {
				return nil, c.wrong(e, "is compared with true or false, without quotes")
			}
			texts = append(texts, v)
		default:
			return nil, c.wrong(e, map[bool]string{true: "is compared with true or false",
				false: "is compared with strings, in quotes"}[c.Type == Boolean])
		}
	}
	return texts, nil
}
