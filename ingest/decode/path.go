package decode

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Path leads to values inside a JSON object: field names separated by dots, each followed by any
// number of [*] (all elements of a list) or [i] (one):
//
//	asin   meta.title   related.also_bought[*]   links[*].target   images[0].alt
//
// Names are literal; a field with a dot or a bracket in its name cannot be reached.
type Path []step

// step is a field name, an index, or all elements.
type step struct {
	field string // "" for an index
	index int    // all for [*]
}

const all = -1

// ParsePath parses a path.
func ParsePath(s string) (Path, error) {
	if !utf8.ValidString(s) {
		return nil, fmt.Errorf("path %q: not valid UTF-8", s)
	}
	var p Path
	for field := range strings.SplitSeq(s, ".") {
		name, brackets := field, ""
		if i := strings.IndexByte(field, '['); i >= 0 {
			name, brackets = field[:i], field[i:]
		}
		if name == "" || strings.ContainsRune(name, ']') {
			return nil, fmt.Errorf("path %q: %q is not a field name; write names separated by dots, like meta.title",
				s, name)
		}
		p = append(p, step{field: name})
		for brackets != "" {
			in, rest, ok := strings.Cut(strings.TrimPrefix(brackets, "["), "]")
			i, err := strconv.ParseUint(in, 10, 31)
			switch {
			case !ok || brackets[0] != '[':
				return nil, fmt.Errorf("path %q: cannot read %q; after a name write [*] or [0]", s, brackets)
			case in == "*":
				p = append(p, step{index: all})
			case err == nil:
				p = append(p, step{index: int(i)})
			default:
				return nil, fmt.Errorf("path %q: cannot read [%s]; write [*] for all elements or [0] for the first",
					s, in)
			}
			brackets = rest
		}
	}
	return p, nil
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
		case s.field != "" && i > 0:
			b.WriteString("." + s.field)
		case s.field != "":
			b.WriteString(s.field)
		case s.index == all:
			b.WriteString("[*]")
		default:
			fmt.Fprintf(&b, "[%d]", s.index)
		}
	}
	return b.String()
}

// wild reports whether the path can lead to several values.
func (p Path) wild() bool {
	for _, s := range p {
		if s.field == "" && s.index == all {
			return true
		}
	}
	return false
}

// pathNode is a node of the trie of all mapped paths.
type pathNode struct {
	fields  []fieldNode
	elem    *pathNode // [*]
	indexed []indexNode
	ends    []pathEnd // slots whose path ends here
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

func (n *pathNode) insert(p Path, s slot, many bool) {
	for _, st := range p {
		n = n.child(st)
	}
	last := p[len(p)-1]
	n.ends = append(n.ends, pathEnd{slot: s, flat: many && (last.field != "" || last.index != all)})
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

func (n *pathNode) field(name []byte) *pathNode {
	for i := range n.fields {
		if n.fields[i].name == string(name) {
			return n.fields[i].node
		}
	}
	return nil
}

func (n *pathNode) element(i int) *pathNode {
	for _, x := range n.indexed {
		if x.index == i {
			return x.node
		}
	}
	return n.elem
}
