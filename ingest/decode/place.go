package decode

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Place puts a value into an object where a path leads, so that a decoder with this path finds it there. What other
// paths have placed in the object stays, unless a list is in the place of an object.
func (p Path) Place(object map[string]any, value any) error {
	if len(p) == 0 || p[0].field == "" {
		return fmt.Errorf("path %v does not begin with a field", p)
	}
	name, rest := p[0].field, p[1:]
	if len(rest) == 0 {
		object[name] = value
		return nil
	}
	if rest[0].field != "" {
		inner, ok := object[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
		}
		object[name] = inner
		return rest.Place(inner, value)
	}
	list, err := rest.list(value)
	object[name] = list
	return err
}

// list returns a list with the value where the path leads, which begins with an index.
func (p Path) list(value any) (list []any, err error) {
	if rest := p[1:]; len(rest) > 0 && rest[0].field == "" {
		value, err = rest.list(value)
	} else if len(rest) > 0 {
		inner := map[string]any{}
		err = rest.Place(inner, value)
		value = inner
	}
	list = make([]any, max(0, p[0].index)+1) // all: the first
	list[len(list)-1] = value
	return list, err
}

// Linkless returns a value that states a node without any edges of its own, for a mapping with Edges.
func (m *NodeMapping) Linkless(id string) ([]byte, error) {
	row, err := place(placed{m.ID, id}, placed{strings.TrimSuffix(m.Edges[0].Path, "[*]"), []any{}})
	if m.Debezium && err == nil {
		row = enclose(row)
	}
	return row, err
}

// Deletion returns a value that deletes a node, if the record's key is the id. It may be null.
func (m *NodeMapping) Deletion(id string) ([]byte, error) {
	if m.Debezium {
		return encloseGone(place(placed{m.ID, id}))
	}
	conditions, err := parseConditions(m.Deleted)
	if err != nil || len(conditions) == 0 {
		return nil, err
	}
	return place(placed{m.ID, id}, placed{conditions[0].path, conditions[0].example()})
}

// Deletion returns a value that takes one edge of a kind back, whatever the mode.
func (m *EdgeMapping) Deletion(src, dst, kind string) ([]byte, error) {
	fields := []placed{{m.Src, src}, {m.Dst, dst}}
	if kind != "" && m.Kind != "" && m.Kind[0] != '"' {
		fields = append(fields, placed{m.Kind, kind})
	}
	conditions, err := parseConditions(m.Deleted)
	if err != nil {
		return nil, err
	}
	if len(conditions) > 0 {
		row, err := place(append(fields, placed{conditions[0].path, conditions[0].example()})...)
		if m.Debezium && err == nil {
			row = enclose(row)
		}
		return row, err
	}
	if m.Debezium && m.Mode != Replace {
		return encloseGone(place(fields...))
	}
	return nil, errors.New("ingest.edges.deleted is empty, so no record can take a single edge back: name a field, " +
		"such as deleted")
}

// Clear returns a value that takes all edges of a source back, if the record's key is its id. It may be null.
func (m *EdgeMapping) Clear(src string) ([]byte, error) {
	if !m.Debezium {
		return nil, nil
	}
	return encloseGone(place(placed{m.Src, src}, placed{strings.TrimSuffix(m.Dst, "[*]"), []any{}}))
}

// encloseGone returns the change event of a deleted row.
func encloseGone(row []byte, err error) ([]byte, error) {
	return slices.Concat([]byte(`{"op":"d","before":`), row, []byte("}")), err
}

// placed is a value at a mapped path.
type placed struct {
	path  string
	value any
}

// place returns an object with values at paths.
func place(fields ...placed) ([]byte, error) {
	object := map[string]any{}
	for _, f := range fields {
		p, err := ParsePath(f.path)
		if err == nil {
			err = p.Place(object, f.value)
		}
		if err != nil {
			return nil, err
		}
	}
	return json.Marshal(object)
}

// example returns a value that meets the condition.
func (c *condition) example() any {
	switch c.test {
	case isOneOf:
		return c.values[0]
	case isNoneOf:
		return "not " + c.values[0]
	}
	return true
}
