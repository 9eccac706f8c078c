package filter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// document is a filter in JSON: one of and, or and not, or an attribute with an operator, and with a value but for
// exists. The value of in is a list.
type document struct {
	And       []json.RawMessage `json:"and,omitempty"`
	Or        []json.RawMessage `json:"or,omitempty"`
	Not       json.RawMessage   `json:"not,omitempty"`
	Attribute *string           `json:"attribute,omitempty"`
	Op        Op                `json:"op,omitempty"`
	Value     any               `json:"value,omitempty"`
}

// UnmarshalJSON reads a filter: an object, or a string with the short form.
func (e *Expr) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		var short string
		if err := json.Unmarshal(data, &short); err != nil {
			return err
		}
		read, err := Parse(short)
		if err != nil {
			return err
		}
		*e = *read
		return nil
	}
	read, err := decode(data, 0, &budget{})
	if err == nil {
		err = read.check(1)
	}
	if err != nil {
		return err
	}
	*e = *read
	return nil
}

func decode(data []byte, depth int, b *budget) (*Expr, error) {
	if depth > maxNested {
		return nil, fault(0, "more than %d filters within filters", maxDepth)
	}
	var d document
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&d); err != nil {
		return nil, fault(0, "%v", WrongType(err))
	}
	kinds := 0
	for _, given := range []bool{d.And != nil, d.Or != nil, d.Not != nil, d.Attribute != nil} {
		if given {
			kinds++
		}
	}
	switch {
	case kinds != 1 || d.Attribute == nil && (d.Op != "" || d.Value != nil):
		return nil, fault(0, `an object has one of and, or, not, or attribute with op and value`)
	case d.And != nil:
		return decodeAll(And, d.And, depth, b)
	case d.Or != nil:
		return decodeAll(Or, d.Or, depth, b)
	case d.Not != nil:
		one, err := decode(d.Not, depth+1, b)
		return &Expr{Op: Not, Of: []*Expr{one}}, err
	}
	return d.comparison(b)
}

func decodeAll(op Op, all []json.RawMessage, depth int, b *budget) (*Expr, error) {
	if len(all) == 0 {
		return nil, fault(0, "%s has an empty list", op)
	}
	of := make([]*Expr, len(all))
	for i, data := range all {
		var err error
		if of[i], err = decode(data, depth+1, b); err != nil {
			return nil, err
		}
	}
	return join(op, of), nil
}

func (d *document) comparison(b *budget) (*Expr, error) {
	e := &Expr{Op: d.Op, Attribute: *d.Attribute}
	list, isList := d.Value.([]any)
	switch {
	case !compares(e.Op):
		return nil, fault(0, "%s: %q is no operator", e.Attribute, e.Op)
	case (e.Op == Exists) != (d.Value == nil) || (e.Op == In) != (isList && len(list) > 0):
		return nil, fault(0, "%s: in has a list of values, exists has none, all others have one value", e.Attribute)
	case isList:
		e.Values = list
	case d.Value != nil:
		e.Values = []any{d.Value}
	}
	for i, v := range e.Values {
		switch v := v.(type) {
		case float64:
			e.Values[i] = v + 0 // 0 for -0
		case string, bool:
		default:
			return nil, fault(0, "%s: a value is a number, a string, true or false", e.Attribute)
		}
	}
	return e, b.spend(e)
}

// WrongType says in the words of JSON that a value has the wrong type, of filters and of questions around them. It
// returns other errors as they are.
func WrongType(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	due := "an object"
	switch wrong.Type.Kind() {
	case reflect.String:
		due = "a string"
	case reflect.Bool:
		due = "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64:
		due = "a whole number"
	case reflect.Float32, reflect.Float64:
		due = "a number"
	case reflect.Slice:
		due = "a list"
	}
	if wrong.Field == "" {
		return fmt.Errorf("it is not %s, but of type %s", due, wrong.Value)
	}
	// Before the last dot may stand a struct that others embed, which is in no question.
	return fmt.Errorf("%s is not %s, but of type %s", wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:], due,
		wrong.Value)
}

// MarshalJSON writes the object by which UnmarshalJSON makes the same filter.
func (e *Expr) MarshalJSON() ([]byte, error) {
	switch e.Op {
	case And, Or:
		return json.Marshal(map[Op][]*Expr{e.Op: e.Of})
	case Not:
		return json.Marshal(map[Op]*Expr{Not: e.Of[0]})
	}
	d := document{Attribute: &e.Attribute, Op: e.Op}
	switch {
	case e.Op == In:
		d.Value = e.Values
	case e.Op != Exists:
		d.Value = e.Values[0]
	}
	return json.Marshal(d)
}
