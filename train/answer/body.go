package answer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"giantstream/internal/suggest"
	"giantstream/train/answer/filter"
)

// decode reads a JSON object. It refuses fields that it does not know or that stand twice, whatever their case.
func decode(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return badRequest{fmt.Errorf("the question: %w%s", filter.WrongType(err), knownFields(err, data, to))}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return badRequest{errors.New("the question has more than one JSON value")}
	}
	if err := ambiguity(data); err != nil {
		return badRequest{fmt.Errorf("the question %w", err)}
	}
	return nil
}

// knownFields says which fields a question can have, if the error is that it has another one.
func knownFields(err error, data []byte, to any) string {
	quoted, ok := strings.CutPrefix(err.Error(), "json: unknown field ")
	name := strings.Trim(quoted, `"`)
	var fields map[string]json.RawMessage
	if _ = json.Unmarshal(data, &fields); !ok || fields[name] == nil { // it may be further in
		return ""
	}
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(to).Elem()) {
		if field, _, _ := strings.Cut(f.Tag.Get("json"), ","); field != "" {
			names = append(names, field)
		}
	}
	slices.Sort(names)
	mean := ""
	if near := suggest.Nearest(name, names); near != "" {
		mean = " did you mean " + near + "?"
	}
	return ";" + mean + " fields are " + strings.Join(names, ", ")
}

// ambiguity is what encoding/json passes over in a JSON value, nil for nothing: null as an element of a list, which it
// takes for the zero value, an empty text, say; and a field that stands twice in an object, the last of which counts.
// It takes names of fields for equal that differ in case.
func ambiguity(data []byte) error {
	type value struct {
		names map[string]bool // of an object; nil in a list
		name  bool            // a name is due
	}
	d := json.NewDecoder(bytes.NewReader(data))
	within := []value{{}}
	for first := true; ; first = false {
		token, err := d.Token()
		if err != nil {
			return nil //nolint:nilerr // the end, or what the decoder has found
		}
		in := &within[len(within)-1]
		if text, ok := token.(string); ok && in.name {
			key := strings.ToLower(text)
			if in.names[key] {
				return fmt.Errorf("has the field %s twice", text)
			}
			in.names[key], in.name = true, false
			continue
		}
		in.name = in.names != nil
		switch token {
		case json.Delim('['):
			within = append(within, value{})
		case json.Delim('{'):
			within = append(within, value{map[string]bool{}, true})
		case json.Delim(']'), json.Delim('}'):
			within = within[:len(within)-1]
		case nil:
			if !first && in.names == nil {
				return errors.New("has null in a list")
			}
		}
	}
}
