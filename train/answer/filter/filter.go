// Package filter asks which nodes have attributes as wanted: a language of filters, with a short form for people and
// one in JSON for programs, and a Table of attributes that answers them.
//
//	price<50 and stock>0 and not category^="Sale"
//
// A comparison matches no node that lacks the attribute, != included; not matches exactly the nodes that what it
// stands before does not match. So price!=5 matches nodes with another price, and not price=5 also those without one.
// Strings are compared byte by byte.
package filter

import (
	"fmt"
	"slices"
	"strings"
)

// Op is what an Expr does.
type Op string

// The operators that join filters.
const (
	And Op = "and"
	Or  Op = "or"
	Not Op = "not"
)

// The operators that compare an attribute with Values.
const (
	Equal    Op = "="
	Unequal  Op = "!="
	In       Op = "in"
	Less     Op = "<"
	AtMost   Op = "<="
	More     Op = ">"
	AtLeast  Op = ">="
	Contains Op = "contains" // a string has a part, a list of strings an element
	Begins   Op = "^="       // a string, or an element of a list
	Exists   Op = "exists"
)

// comparisons are the operators that compare, as messages name them.
var comparisons = []Op{Equal, Unequal, Less, AtMost, More, AtLeast, Begins, In, Contains, Exists}

// Bounds of a filter.
const (
	maxDepth  = 32   // expressions within expressions
	maxNested = 100  // parentheses, nots and objects within each other
	maxParts  = 64   // comparisons
	maxValues = 1000 // of all comparisons together
)

// Expr is a filter.
type Expr struct {
	Op Op
	// Of has two or more expressions of And and Or, none of which has the same operator, and one of Not.
	Of []*Expr

	Attribute string
	// Values are float64, string or bool: one, none for Exists, and any number but none for In.
	Values []any

	column int // of Attribute in the short form, 0 for none
}

// Error says what is wrong with a filter.
type Error struct {
	// Column is where in the short form, from 1, in bytes; 0 for a filter in JSON, Outside for a name elsewhere.
	Column  int
	Message string
}

// Outside is the Column of what stands in no filter.
const Outside = -1

// Error implements error.
func (e *Error) Error() string {
	switch e.Column {
	case Outside:
		return e.Message
	case 0:
		return "where: " + e.Message
	}
	return fmt.Sprintf("where, column %d: %s", e.Column, e.Message)
}

func fault(column int, format string, args ...any) *Error {
	return &Error{column, fmt.Sprintf(format, args...)}
}

// join returns the expressions as one of And or Or.
func join(op Op, of []*Expr) *Expr {
	if len(of) == 1 {
		return of[0]
	}
	e := &Expr{Op: op}
	for _, one := range of {
		if one.Op == op {
			e.Of = append(e.Of, one.Of...)
		} else {
			e.Of = append(e.Of, one)
		}
	}
	return e
}

// check refuses a filter that is too deep.
func (e *Expr) check(depth int) error {
	if depth > maxDepth {
		return fault(0, "more than %d filters within filters", maxDepth)
	}
	for _, one := range e.Of {
		if err := one.check(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

// budget counts what a filter has, so that no question takes long.
type budget struct{ parts, values int }

func (b *budget) spend(e *Expr) error {
	b.parts++
	b.values += len(e.Values)
	if b.parts > maxParts || b.values > maxValues {
		return fault(e.column, "a filter has at most %d comparisons, with %d values together", maxParts, maxValues)
	}
	return nil
}

// Attributes returns the names of the attributes that the filter compares, sorted.
func (e *Expr) Attributes() (names []string) {
	if e.Attribute != "" {
		names = append(names, e.Attribute)
	}
	for _, one := range e.Of {
		names = append(names, one.Attributes()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// String returns the short form, by which Parse makes the same filter.
func (e *Expr) String() string {
	var b strings.Builder
	e.write(&b)
	return b.String()
}

func (e *Expr) write(b *strings.Builder) {
	switch e.Op {
	case And, Or:
		for i, one := range e.Of {
			if i > 0 {
				b.WriteString(" " + string(e.Op) + " ")
			}
			one.writeWithin(b, e.Op == And && one.Op == Or)
		}
		return
	case Not:
		b.WriteString("not ")
		e.Of[0].writeWithin(b, e.Of[0].Op == And || e.Of[0].Op == Or)
		return
	}
	if wordLen(e.Attribute) < len(e.Attribute) || keyword(e.Attribute) != "" || e.Attribute == "" {
		writeString(b, e.Attribute)
	} else {
		b.WriteString(e.Attribute)
	}
	op := string(e.Op)
	if wordLen(op) > 0 {
		op = " " + op + " "
	}
	switch e.Op {
	case Exists:
		b.WriteString(" exists")
	case In:
		b.WriteString(op + "(")
		for i, v := range e.Values {
			if i > 0 {
				b.WriteString(", ")
			}
			writeValue(b, v)
		}
		b.WriteString(")")
	default:
		b.WriteString(op)
		writeValue(b, e.Values[0])
	}
}

func (e *Expr) writeWithin(b *strings.Builder, parentheses bool) {
	if parentheses {
		b.WriteByte('(')
		defer b.WriteByte(')')
	}
	e.write(b)
}

func writeValue(b *strings.Builder, v any) {
	if s, ok := v.(string); ok {
		writeString(b, s)
		return
	}
	fmt.Fprint(b, v)
}

var quoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

func writeString(b *strings.Builder, s string) {
	b.WriteByte('"')
	_, _ = quoter.WriteString(b, s) // a Builder takes all
	b.WriteByte('"')
}
