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
// compared as its type is not. A comparison that was not asked lately reads its column once, a few milliseconds per
// million nodes.
func (t *Table) Select(e *Expr, n int) (Set, error) {
	switch e.Op {
	case And, Or, Not:
		return t.combine(e, n)
	}
	c, err := t.column(e.Attribute, e.column)
	if err != nil {
		return nil, err
	}
	in, err := c.nodes(e)
	if err != nil {
		return nil, err
	}
	out := make(Set, (n+63)/64)
	copy(out, in)
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

// ranges returns the numbers or times that match a comparison: ascending ranges, ends included.
func (c *column) ranges(e *Expr) ([][2]float64, error) {
	least, most := math.Inf(-1), math.Inf(1)
	if e.Op == Exists {
		return [][2]float64{{least, most}}, nil
	}
	var some []float64
	for _, v := range e.Values {
		x, err := c.numberOf(v, e)
		if err != nil {
			return nil, err
		}
		some = append(some, x)
	}
	slices.Sort(some)
	x := some[0]
	below, above := math.Nextafter(x, least), math.Nextafter(x, most)
	switch e.Op {
	case Equal, In:
		var all [][2]float64
		for _, x := range slices.Compact(some) {
			all = append(all, [2]float64{x, x})
		}
		return all, nil
	case Unequal:
		return [][2]float64{{least, below}, {above, most}}, nil
	case Less:
		return [][2]float64{{least, below}}, nil
	case AtMost:
		return [][2]float64{{least, x}}, nil
	case More:
		return [][2]float64{{above, most}}, nil
	case AtLeast:
		return [][2]float64{{x, most}}, nil
	}
	return nil, c.wrong(e, "is compared by =, !=, <, <=, >, >=, in and exists")
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

// accepted returns what says whether a value matches a comparison, and the texts of all that do, if the comparison
// names them.
func (c *column) accepted(e *Expr) (accepts func(v *entry) bool, all []string, err error) {
	if e.Op == Exists {
		return func(*entry) bool { return true }, nil, nil
	}
	texts, err := c.textsOf(e)
	if err != nil {
		return nil, nil, err
	}
	var compare func(have, with string) bool
	switch {
	case c.Type != Strings && (e.Op == Equal || e.Op == In):
		return func(v *entry) bool { return slices.Contains(texts, v.text) }, texts, nil
	case c.Type != Strings && e.Op == Unequal:
		compare = func(have, with string) bool { return have != with }
	case c.Type == Boolean:
		return nil, nil, c.wrong(e, "is compared by =, !=, in and exists")
	case e.Op == Begins:
		compare = strings.HasPrefix
	case e.Op == Contains && c.Type == String:
		compare = strings.Contains
	case e.Op == Contains:
		compare = func(have, with string) bool { return have == with }
	case c.Type == Strings:
		return nil, nil, c.wrong(e, "is compared by contains (an element), ^= (how one begins) and exists")
	default:
		return nil, nil, c.wrong(e, "is compared by =, !=, in, ^=, contains and exists")
	}
	match := func(have string) bool { return compare(have, texts[0]) }
	return func(v *entry) bool { return v.anyElement(c.Type, match) }, nil, nil
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
