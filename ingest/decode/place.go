package decode

import "fmt"

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
