package decode

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Path leads to values inside a JSON object: field names separated by dots, each followed by any
// number of [*] (all elements of a list), [i] (one) or [name=value] (those whose field has the value):
//
//	asin   meta.title   related.also_bought[*]   links[*].target   images[0].alt   texts[locale=de].value
//
// Names are literal. One with a dot or a bracket stands in brackets and quotes: ["price.net"], offer["price.net"].
type Path []step

// step is a field name, an index, or all elements, perhaps those alone whose field has a value.
type step struct {
	field string // "" for an index
	index int    // all for [*]
	where string // the path of the field within the element, "" for any element
	value string // of the field, as text
}

const all = -1

// ParsePath parses a path.
func ParsePath(s string) (Path, error) {
	if !utf8.ValidString(s) {
		return nil, fmt.Errorf("path %q: not valid UTF-8", s)
	}
	var p Path
	for rest := s; ; {
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		name := rest[:end]
		if rest = rest[end:]; name != "" && !strings.ContainsRune(name, ']') {
			p = append(p, step{field: name})
		} else if name != "" || !strings.HasPrefix(rest, `["`) {
			return nil, fmt.Errorf("path %q: %q is not a field name; write names separated by dots, like meta.title",
				s, name)
		}
		for strings.HasPrefix(rest, "[") {
			in, after, ok := cutBracket(rest)
			if !ok {
				return nil, fmt.Errorf("path %q: cannot read %q; after a name write [*], [0] or [name=value]", s, rest)
			}
			element, err := parseElement(in)
			if err != nil {
				return nil, fmt.Errorf("path %q: cannot read [%s]; %w", s, in, err)
			}
			p, rest = append(p, element), after
		}
		if rest == "" {
			return p, nil
		}
		if rest[0] != '.' {
			return nil, fmt.Errorf("path %q: cannot read %q after a bracket; write a dot before a name", s, rest)
		}
		rest = rest[1:]
	}
}

// cutBracket returns what stands in the bracket that s begins with, and what follows it.
func cutBracket(s string) (in, rest string, ok bool) {
	quoted := false
	for i := 1; i < len(s) && s[0] == '['; i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == ']' && !quoted:
			return s[1:i], s[i+1:], true
		}
	}
	return "", "", false
}

// parseElement parses what stands in brackets.
func parseElement(in string) (step, error) {
	if in == "*" {
		return step{index: all}, nil
	}
	if strings.HasPrefix(in, `"`) {
		name, err := strconv.Unquote(in)
		if err != nil || name == "" {
			return step{}, errors.New(`write the name of a field in double quotes`)
		}
		return step{field: name}, nil
	}
	if where, value, ok := strings.Cut(in, "="); ok {
		p, err := ParsePath(where)
		switch {
		case err == nil && slices.ContainsFunc(p, func(s step) bool { return s.field == "" }):
			return step{}, fmt.Errorf("%q leads into a list; write the name of a field", where)
		case strings.Contains(where, `"`): // which would make quoted what is not the value
			return step{}, fmt.Errorf("the name of a field that elements are chosen by has no quotes: %s", where)
		case err == nil && strings.HasPrefix(value, `"`):
			value, err = strconv.Unquote(value)
		}
		if err != nil || value == "" {
			return step{}, errors.New(`write [name=value] or [name="value"] for the elements whose field has the value`)
		}
		return step{index: all, where: where, value: value}, nil
	}
	i, err := strconv.ParseUint(in, 10, 31)
	if err != nil {
		return step{}, errors.New("write [*] for all elements, [0] for the first, or [name=value] for those whose " +
			"field has the value")
	}
	return step{index: int(i)}, nil
}

// FirstField returns the name of the field that a path begins with, "" if there is no such path; list
// says that the field is a list of what the path leads to, name[*] or name[0], nested that the path
// leads further into it.
func FirstField(path string) (name string, list, nested bool) {
	p, err := ParsePath(path)
	if err != nil {
		return "", false, false
	}
	return p[0].field, len(p) == 2 && p[1].field == "", len(p) > 1
}

// String gives the path back as it was written.
func (p Path) String() string {
	var b strings.Builder
	for i, s := range p {
		switch {
		case s.field != "":
			name := QuoteField(s.field)
			if i > 0 && name[0] != '[' {
				b.WriteByte('.')
			}
			b.WriteString(name)
		case s.where != "":
			fmt.Fprintf(&b, "[%s=%s]", s.where, quoteValue(s.value))
		case s.index == all:
			b.WriteString("[*]")
		default:
			fmt.Fprintf(&b, "[%d]", s.index)
		}
	}
	return b.String()
}

// QuoteField writes the name of a field as a path has it.
func QuoteField(name string) string {
	if strings.ContainsAny(name, ".[]") {
		return "[" + strconv.Quote(name) + "]"
	}
	return name
}

// quoteValue writes a value of an element's field as a path has it.
func quoteValue(s string) string {
	if strings.ContainsAny(s, `"[]`) {
		return strconv.Quote(s)
	}
	return s
}

// wild reports whether the path leads to as many values as a list has.
func (p Path) wild() bool {
	return slices.ContainsFunc(p, func(s step) bool { return s.field == "" && s.index == all && s.where == "" })
}

// optional reports whether it is common that the path leads nowhere: a list may have no such elements.
func (p Path) optional() bool {
	return slices.ContainsFunc(p, func(s step) bool { return s.field == "" && s.index == all })
}

// PlainPath returns the names of a path's fields with dots between them, or what is no path as it is.
func PlainPath(path string) string {
	p, err := ParsePath(path)
	if err != nil {
		return path
	}
	var names []string
	for _, s := range p {
		if s.field != "" {
			names = append(names, s.field)
		}
	}
	return strings.Join(names, ".")
}

// lastField returns the name of the last field of a path.
func (p Path) lastField() (name string) {
	for _, s := range p {
		name = cmp.Or(s.field, name)
	}
	return name
}

// pathNode is a node of the trie of all mapped paths.
type pathNode struct {
	fields  []fieldNode
	elem    *pathNode // [*]
	indexed []indexNode
	ends    []pathEnd // slots whose path ends here
	// intoObject and intoList are slots of fields that state something by their absence, whose paths go on into an
	// object here, or into a list.
	intoObject, intoList []slot
}

type fieldNode struct {
	name string
	node *pathNode
}

type indexNode struct {
	index int
	node  *pathNode
}

type pathEnd struct {
	slot slot
	// flat: a list here counts as its elements.
	flat bool
}

func (n *pathNode) insert(p Path, f mappedField) {
	for _, st := range p {
		switch {
		case f.states && st.field != "":
			n.intoObject = append(n.intoObject, f.slot)
		case f.states:
			n.intoList = append(n.intoList, f.slot)
		}
		n = n.child(st)
	}
	last := p[len(p)-1]
	n.ends = append(n.ends, pathEnd{slot: f.slot, flat: f.many && (last.field != "" || last.index != all)})
}

func (n *pathNode) child(s step) *pathNode {
	switch {
	case s.field != "":
		for _, f := range n.fields {
			if f.name == s.field {
				return f.node
			}
		}
		c := &pathNode{}
		n.fields = append(n.fields, fieldNode{s.field, c})
		return c
	case s.index == all:
		if n.elem == nil {
			n.elem = &pathNode{}
		}
		return n.elem
	default:
		for _, x := range n.indexed {
			if x.index == s.index {
				return x.node
			}
		}
		c := &pathNode{}
		n.indexed = append(n.indexed, indexNode{s.index, c})
		return c
	}
}

// finish adds an element node for each flat end, and merges [*] into each [i], so that the scanner
// follows one node at a time.
func (n *pathNode) finish() {
	for _, e := range n.ends {
		if e.flat {
			elem := n.child(step{index: all})
			elem.ends = append(elem.ends, pathEnd{slot: e.slot})
		}
	}
	for _, x := range n.indexed {
		if n.elem != nil {
			x.node.merge(n.elem)
		}
		x.node.finish()
	}
	if n.elem != nil {
		n.elem.finish()
	}
	for _, f := range n.fields {
		f.node.finish()
	}
}

func (n *pathNode) merge(o *pathNode) {
	n.ends = append(n.ends, o.ends...)
	n.intoObject, n.intoList = append(n.intoObject, o.intoObject...), append(n.intoList, o.intoList...)
	for _, f := range o.fields {
		n.child(step{field: f.name}).merge(f.node)
	}
	for _, x := range o.indexed {
		n.child(step{index: x.index}).merge(x.node)
	}
	if o.elem != nil {
		n.child(step{index: all}).merge(o.elem)
	}
}

// field returns the position of a field, -1 for one that no path leads through.
func (n *pathNode) field(name []byte) int {
	for i := range n.fields {
		if n.fields[i].name == string(name) {
			return i
		}
	}
	return -1
}

func (n *pathNode) element(i int) *pathNode {
	for _, x := range n.indexed {
		if x.index == i {
			return x.node
		}
	}
	return n.elem
}
