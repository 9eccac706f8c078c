package decode

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a value.
const maxDepth = 512

// kind of a JSON value that was captured.
type kind uint8

const (
	kindString kind = iota
	kindNumber
	kindTrue
	kindFalse
	kindList
	kindObject
)

func (k kind) String() string {
	return [...]string{"a string", "a number", "true", "false", "a list", "an object"}[k]
}

// value is a captured JSON value. raw is the number or the object as written, the bytes between a
// string's quotes, or what a list begins and what follows it.
type value struct {
	kind    kind
	escaped bool
	// misplaced: the path goes on and cannot enter the value.
	misplaced bool
	raw       []byte
	// element is where the innermost list element around it begins, and index the element's; 0 outside of lists.
	element, index int
}

// scanner reads one JSON document, checks it, and captures the values that the paths lead to. The
// document must be valid UTF-8 already.
type scanner struct {
	data []byte
	pos  int
	// element and index as those of a value that is captured here.
	element, index int
	// captured values by slot, without nulls. At most limit+1 are kept per slot.
	captured [][]value
	listed   []bool // slot had a list, perhaps an empty one
	present  []bool // the document has the field of the root, perhaps with null
	limit    int
	err      error
}

var (
	errSyntax    = errors.New("not well-formed")
	errSurrogate = errors.New("half of a surrogate pair")
)

func (s *scanner) reset(data []byte) {
	s.data, s.pos, s.err = data, 0, nil
	s.element, s.index = 0, 0
	for i := range s.captured {
		s.captured[i] = s.captured[i][:0]
		s.listed[i] = false
	}
}

// scan reads the document. The error wraps errSyntax or errSurrogate.
func (s *scanner) scan(root *pathNode) error {
	s.present = append(s.present[:0], make([]bool, len(root.fields))...)
	s.space()
	if !s.value(root, 0) {
		return s.err
	}
	if s.space(); s.pos < len(s.data) {
		s.fail("more after the end of the value")
	}
	return s.err
}

// fail notes the first error and returns false.
func (s *scanner) fail(what string) bool {
	if s.err == nil {
		s.err = fmt.Errorf("%w: %s at byte %d", errSyntax, what, s.pos)
	}
	return false
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\n', '\r', '\t':
			s.pos++
		default:
			return
		}
	}
}

// next returns the byte at the position, 0 at the end.
func (s *scanner) next() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

// value reads a value; n is nil where no path leads.
func (s *scanner) value(n *pathNode, depth int) bool {
	if depth > maxDepth {
		return s.fail("nested too deeply")
	}
	switch c := s.next(); {
	case c == '"':
		raw, escaped, ok := s.str()
		if ok {
			s.capture(n, value{kind: kindString, escaped: escaped, raw: raw})
		}
		return ok
	case c == '{':
		from := s.pos
		if !s.object(n, depth) {
			return false
		}
		s.capture(n, value{kind: kindObject, raw: s.data[from:s.pos]})
		return true
	case c == '[':
		s.capture(n, value{kind: kindList, raw: s.data[s.pos:]})
		return s.list(n, depth)
	case c == '-' || '0' <= c && c <= '9':
		raw, ok := s.number()
		if ok {
			s.capture(n, value{kind: kindNumber, raw: raw})
		}
		return ok
	case c == 't':
		s.capture(n, value{kind: kindTrue})
		return s.literal("true")
	case c == 'f':
		s.capture(n, value{kind: kindFalse})
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	case s.pos >= len(s.data):
		return s.fail("ends too early")
	default:
		return s.fail("no value")
	}
}

func (s *scanner) capture(n *pathNode, v value) {
	if n == nil {
		return
	}
	v.element, v.index = s.element, s.index
	for _, e := range n.ends {
		if v.kind == kindList && e.flat {
			s.listed[e.slot] = true
			continue
		}
		s.keep(e.slot, v)
	}
	v.misplaced = true
	if v.kind != kindObject && !v.emptyList() {
		for _, at := range n.intoObject {
			s.keep(at, v)
		}
	}
	if v.kind != kindList {
		for _, at := range n.intoList {
			s.keep(at, v)
		}
	}
}

// emptyList reports whether a value is a list without elements, as PHP also writes an object without fields.
func (v *value) emptyList() bool {
	return v.kind == kindList && bytes.HasPrefix(bytes.TrimLeft(v.raw[1:], " \n\r\t"), []byte{']'})
}

func (s *scanner) keep(at slot, v value) {
	if c := s.captured[at]; len(c) <= s.limit {
		s.captured[at] = append(c, v)
	}
}

func (s *scanner) object(n *pathNode, depth int) bool {
	s.pos++ // {
	if s.space(); s.next() == '}' {
		s.pos++
		return true
	}
	for {
		if s.next() != '"' {
			return s.fail("no field name")
		}
		name, escaped, ok := s.str()
		if !ok {
			return false
		}
		if s.space(); s.next() != ':' {
			return s.fail("no colon after a field name")
		}
		s.pos++
		s.space()
		var child *pathNode
		if n != nil && len(n.fields) > 0 {
			if escaped {
				name = unescape(nil, name)
			}
			if i := n.field(name); i >= 0 {
				child = n.fields[i].node
				if depth == 0 {
					s.present[i] = true
				}
			}
		}
		if !s.value(child, depth+1) {
			return false
		}
		s.space()
		switch s.next() {
		case ',':
			s.pos++
			s.space()
		case '}':
			s.pos++
			return true
		default:
			return s.fail("no comma or } after a field")
		}
	}
}

func (s *scanner) list(n *pathNode, depth int) bool {
	s.pos++ // [
	if s.space(); s.next() == ']' {
		s.pos++
		return true
	}
	element, index := s.element, s.index
	for i := 0; ; i++ {
		var child *pathNode
		if n != nil {
			child = n.element(i)
			s.element, s.index = s.pos, i
		}
		if !s.value(child, depth+1) {
			return false
		}
		s.space()
		switch s.next() {
		case ',':
			s.pos++
			s.space()
		case ']':
			s.pos++
			s.element, s.index = element, index
			return true
		default:
			return s.fail("no comma or ] after an element")
		}
	}
}

func (s *scanner) literal(word string) bool {
	if string(s.data[s.pos:min(s.pos+len(word), len(s.data))]) != word {
		return s.fail("no value")
	}
	s.pos += len(word)
	return true
}

// number reads -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
func (s *scanner) number() ([]byte, bool) {
	from := s.pos
	if s.next() == '-' {
		s.pos++
	}
	if s.next() == '0' {
		s.pos++
	} else if !s.digits() {
		return nil, s.fail("bad number")
	}
	if s.next() == '.' {
		s.pos++
		if !s.digits() {
			return nil, s.fail("bad number")
		}
	}
	if c := s.next(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.next(); c == '+' || c == '-' {
			s.pos++
		}
		if !s.digits() {
			return nil, s.fail("bad number")
		}
	}
	return s.data[from:s.pos], true
}

func (s *scanner) digits() bool {
	from := s.pos
	for s.pos < len(s.data) && '0' <= s.data[s.pos] && s.data[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > from
}

// str reads a string and returns what is between the quotes.
func (s *scanner) str() (raw []byte, escaped, ok bool) {
	s.pos++ // "
	from := s.pos
	for {
		s.pos += plain(s.data[s.pos:])
		if s.pos == len(s.data) {
			return nil, false, s.fail("string without end")
		}
		switch c := s.data[s.pos]; {
		case c == '"':
			raw = s.data[from:s.pos]
			s.pos++
			return raw, escaped, true
		case c == '\\':
			escaped = true
			if !s.escape() {
				return nil, false, false
			}
		default:
			return nil, false, s.fail("unescaped control character in a string")
		}
	}
}

// plain returns how many bytes at the start of b stand for themselves in a string: those before the
// first quote, backslash or control character. It looks at eight bytes at a time.
func plain(b []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; n+8 <= len(b); n += 8 {
		w := binary.LittleEndian.Uint64(b[n:])
		quote, backslash := w^(ones*'"'), w^(ones*'\\')
		// The high bit of a byte is set if the byte is below a space, or if quote or backslash has
		// a zero there. A borrow can set further high bits, but only above one that is correctly
		// set.
		if found := ((w-ones*' ')&^w | (quote-ones)&^quote | (backslash-ones)&^backslash) & highs; found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
	}
	for ; n < len(b); n++ {
		if c := b[n]; c == '"' || c == '\\' || c < ' ' {
			return n
		}
	}
	return n
}

// escape reads one escape, or two that make a surrogate pair.
func (s *scanner) escape() bool {
	if s.pos+1 >= len(s.data) {
		return s.fail("string without end")
	}
	switch s.data[s.pos+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos += 2
		return true
	case 'u':
	default:
		return s.fail("unknown escape in a string")
	}
	r, ok := hex4(s.data[s.pos:])
	if !ok {
		return s.fail("bad \\u escape in a string")
	}
	size := 6
	if utf16.IsSurrogate(r) {
		low, ok := hex4(s.data[s.pos+6:])
		if !ok || utf16.DecodeRune(r, low) == utf8.RuneError {
			s.err = fmt.Errorf("%w at byte %d", errSurrogate, s.pos)
			return false
		}
		size = 12
	}
	s.pos += size
	return true
}

// hex4 reads the \uXXXX at the start of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unescape appends a string that str has checked, without its escapes.
func unescape(dst, raw []byte) []byte {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			dst = append(dst, raw[i])
			continue
		}
		i++
		switch c := raw[i]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, _ := hex4(raw[i-1:])
			i += 4
			if utf16.IsSurrogate(r) {
				low, _ := hex4(raw[i+1:])
				r = utf16.DecodeRune(r, low)
				i += 6
			}
			dst = utf8.AppendRune(dst, r)
		default: // " \ /
			dst = append(dst, c)
		}
	}
	return dst
}
