package vectordb

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Attribute is what tables have of nodes beside their vectors, such as a price.
type Attribute struct {
	Name string
	Type AttributeType
}

// AttributeType says what the values of an attribute are.
type AttributeType string

// The types of attributes, and what their values are in Record.Values.
const (
	Number  AttributeType = "number"  // float64
	Boolean AttributeType = "boolean" // bool
	String  AttributeType = "string"  // string
	Strings AttributeType = "strings" // []string
	Time    AttributeType = "time"    // time.Time, in whole microseconds
)

// Values returns what a JSON object has of some attributes, as Record.Values: all nil if it is "".
func Values(object string, all []Attribute) ([]any, error) {
	values := make([]any, len(all))
	if object == "" {
		return values, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(object), &fields); err != nil {
		return nil, fmt.Errorf("attributes: %w", err)
	}
	for i, a := range all {
		field, ok := fields[a.Name]
		if !ok {
			continue
		}
		var err error
		if values[i], err = valueOf(field, a.Type); err != nil {
			return nil, fmt.Errorf("attribute %s, which is a %s: %w", a.Name, a.Type, err)
		}
	}
	return values, nil
}

var errZeroByte = errors.New("it has a zero byte, which the text of some databases cannot hold")

func valueOf(field json.RawMessage, t AttributeType) (any, error) {
	switch t {
	case Number:
		return parse[float64](field)
	case Boolean:
		return parse[bool](field)
	case Time:
		return parse[time.Time](field)
	case Strings:
		v, err := parse[[]string](field)
		if all, _ := v.([]string); strings.Contains(strings.Join(all, ""), "\x00") {
			return nil, errZeroByte
		}
		return v, err
	}
	v, err := parse[string](field)
	if s, _ := v.(string); strings.Contains(s, "\x00") {
		return nil, errZeroByte
	}
	return v, err
}

// parse returns nil for null.
func parse[T any](field json.RawMessage) (any, error) {
	var v *T
	if err := json.Unmarshal(field, &v); err != nil || v == nil {
		return nil, err
	}
	return *v, nil
}
