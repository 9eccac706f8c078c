package decode

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// condition is one of those under which a record deletes what it names. A record without the field
// does not meet it.
type condition struct {
	path string
	test test
	// values are what the field is compared with, as text.
	values []string
}

// test is how a condition compares.
type test uint8

const (
	isTrue test = iota // the field is true
	isOneOf
	isNoneOf
)

// parseConditions parses what Mapping calls deleted: conditions of which one is enough.
//
//	gone                                    the field is true
//	status == discontinued                  it has a value
//	status != active                        it has another value
//	status in [draft, "sold out"]           it has one of several values
//	online == 2 or visibility == "Not Visible"
func parseConditions(s string) ([]condition, error) {
	if s == "" {
		return nil, nil
	}
	var all []condition
	for _, part := range splitOutside(s, " or ") {
		c, err := parseCondition(strings.TrimSpace(part))
		if err == nil && c.path == "" {
			err = fmt.Errorf("condition %q names no field", part)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func parseCondition(s string) (condition, error) {
	if path, rest, ok := strings.Cut(s, " in ["); ok {
		list, closed := strings.CutSuffix(rest, "]")
		if !closed {
			return condition{}, fmt.Errorf("condition %q: the list of values has no closing bracket", s)
		}
		c := condition{path: strings.TrimSpace(path), test: isOneOf}
		for _, v := range splitOutside(list, ",") {
			value, err := conditionValue(s, v)
			if err != nil {
				return c, err
			}
			c.values = append(c.values, value)
		}
		return c, nil
	}
	for _, o := range []struct {
		sign string
		test test
	}{{"==", isOneOf}, {"!=", isNoneOf}} {
		path, v, ok := strings.Cut(s, o.sign)
		if !ok {
			continue
		}
		value, err := conditionValue(s, v)
		return condition{path: strings.TrimSpace(path), test: o.test, values: []string{value}}, err
	}
	return condition{path: s}, nil
}

// conditionValue reads a value, bare or in double quotes.
func conditionValue(s, v string) (string, error) {
	v = strings.TrimSpace(v)
	switch {
	case v == "":
		return "", fmt.Errorf("condition %q: a value is missing; write PATH == VALUE, PATH != VALUE or "+
			"PATH in [VALUE, VALUE], and an empty value as \"\"", s)
	case v[0] != '"':
		return v, nil
	}
	unquoted, err := strconv.Unquote(v)
	if err != nil {
		return "", fmt.Errorf("condition %q: cannot read the value %s", s, v)
	}
	return unquoted, nil
}

// splitOutside splits s at each separator that is in neither quotes nor brackets.
func splitOutside(s, separator string) []string {
	var parts []string
	from, quoted, depth := 0, false, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[':
			depth++
		case c == ']':
			depth--
		case depth == 0 && strings.HasPrefix(s[i:], separator):
			parts = append(parts, s[from:i])
			from = i + len(separator)
			i = from - 1
		}
	}
	return append(parts, s[from:])
}

// Paths returns the paths that the conditions of a mapping's deleted look at, none if it cannot be
// parsed.
func Paths(deleted string) (paths []string) {
	conditions, err := parseConditions(deleted)
	if err != nil {
		return nil
	}
	for _, c := range conditions {
		paths = append(paths, c.path)
	}
	return paths
}

// deleted reports whether the value meets one of the conditions.
func (d *Decoder) deleted() (bool, *Fault) {
	for i := range d.conditions {
		v, ok := d.one(d.firstCondition + slot(i))
		if !ok {
			continue
		}
		if met, fault := d.meets(&d.conditions[i], v); met || fault != nil {
			return met, fault
		}
	}
	return false, nil
}

func (d *Decoder) meets(c *condition, v value) (bool, *Fault) {
	if c.test == isTrue {
		// CSV has only strings, and so has Debezium's field __deleted.
		is := func(word string) bool { return v.kind == kindString && bytes.EqualFold(v.raw, []byte(word)) }
		switch {
		case v.kind == kindTrue || is("true"):
			return true, nil
		case v.kind == kindFalse || is("false"):
			return false, nil
		}
		return false, faultf(BadType, "deleted is %s; it must be true or false, or the mapping must say which "+
			"values of %s delete: %s == VALUE", v.kind, c.path, c.path)
	}
	var text string
	switch v.kind {
	case kindString:
		text = d.text(v)
	case kindNumber:
		text = string(integral(v.raw))
	case kindTrue, kindFalse:
		text = v.kind.String()
	default:
		return false, faultf(BadType, "%s, which decides whether the record deletes, is %s; it must be a string, a "+
			"number or a boolean", c.path, v.kind)
	}
	return slices.Contains(c.values, text) == (c.test == isOneOf), nil
}
