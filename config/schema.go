package config

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Schema returns a JSON Schema (draft 2020-12) of configuration files, for editors: the fields and what they
// take from the types of Config, their descriptions from the comments of Example. It accepts every file that
// Parse accepts, and refuses fields that do not exist and values of another kind. What depends on several
// fields, Validate alone checks. The annotation x-effect of a field is its Effect.
func Schema() ([]byte, error) {
	defaults := Default()
	root := sectionSchema(reflect.ValueOf(&defaults).Elem(), "", descriptions())
	defaults.EachField(func(path string, _ reflect.Value, effect Effect) {
		lookUp(root, path)["x-effect"] = effect
	})
	for old, now := range oldNames {
		field := maps.Clone(lookUp(root, now))
		field["deprecated"], field["description"] = true, "Old name of "+now+"."
		addField(root, old, field)
	}
	for old, gone := range removedNames {
		addField(root, old, schema{"deprecated": true, "description": "No more: " + gone.why + "."})
	}
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Configuration of giantstream"
	root["type"] = []string{"object", "null"} // an empty file has the defaults
	return json.MarshalIndent(root, "", "  ")
}

type schema = map[string]any

// lookUp returns the schema of the field at path.
func lookUp(root schema, path string) schema {
	for name := range strings.SplitSeq(path, ".") {
		root = root["properties"].(schema)[name].(schema) //nolint:errcheck // for paths of fields
	}
	return root
}

// addField adds the schema of a field to that of its section.
func addField(root schema, path string, field schema) {
	name := path
	if i := strings.LastIndex(path, "."); i >= 0 {
		root, name = lookUp(root, path[:i]), path[i+1:]
	}
	root["properties"].(schema)[name] = field //nolint:errcheck // sections have properties
}

// sectionSchema is the schema of a section. One whose lines are all commented out is null.
func sectionSchema(v reflect.Value, path string, described map[string]string) schema {
	fields := schema{}
	for i, name := range fieldNames(v.Type()) {
		child := name
		if path != "" {
			child = path + "." + name
		}
		field := v.Field(i)
		if field.Kind() == reflect.Struct {
			fields[name] = sectionSchema(field, child, described)
		} else {
			fields[name] = fieldSchema(field, child)
		}
		if text, _ := cutEffect(described[child]); text != "" {
			fields[name].(schema)["description"] = text //nolint:errcheck // made above
		}
	}
	return schema{"type": []string{"object", "null"}, "properties": fields, "additionalProperties": false}
}

// variable is the schema of a value that the environment gives, in whole or in part.
var variable = schema{"type": "string", "pattern": `\$\{`}

// fieldSchema is the schema of a field, whose value is the default.
func fieldSchema(v reflect.Value, path string) schema {
	one := scalarSchema(v.Type())
	if list := choices[path]; list != nil {
		if text := v.String(); !slices.Contains(list, text) {
			list = append([]string{text}, list...)
		}
		one = schema{"enum": list}
	}
	out := schema{"anyOf": []schema{one, variable}}
	switch {
	case v.Type() == reflect.TypeFor[List]():
		elements := schema{"anyOf": []schema{scalarSchema(v.Type().Elem()), variable}}
		out = schema{"anyOf": []schema{{"type": "array", "items": elements}, elements}}
	case isSections(v.Type()):
		out = schema{"type": "array", "items": sectionSchema(reflect.New(v.Type().Elem()).Elem(), path, nil)}
	case v.Kind() == reflect.Slice:
		out = schema{"type": "array", "items": schema{"anyOf": []schema{scalarSchema(v.Type().Elem()), variable}}}
	}
	switch value := v.Interface().(type) {
	case Secret:
	case time.Duration:
		out["default"] = value.String()
	case Size:
		out["default"] = value.String()
	default:
		out["default"] = value
	}
	return out
}

// scalarSchema is the schema of a scalar as the decoder reads it: a YAML number or truth value is also a
// string of what is written, and the other way around.
func scalarSchema(t reflect.Type) schema {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return schema{"anyOf": []schema{
			{"type": "string", "pattern": `^[+-]?([0-9]*\.?[0-9]+(ns|us|µs|ms|s|m|h))+$`},
			{"const": 0}, {"const": "0"}}}
	case reflect.TypeFor[Size]():
		return schema{"anyOf": []schema{{"type": "number", "minimum": 0},
			{"type": "string", "pattern": `^[0-9.eE+]+ *([KMGT]i)?B?$`}}}
	}
	number := schema{"type": "string", "pattern": `^[+-]?[0-9.eE+-]+$`}
	switch t.Kind() {
	case reflect.Bool:
		return schema{"enum": []any{true, false, "true", "false"}}
	case reflect.Int, reflect.Uint64:
		return schema{"anyOf": []schema{{"type": "integer"}, number}}
	case reflect.Float64:
		return schema{"anyOf": []schema{{"type": "number"}, number}}
	default:
		return schema{"type": []string{"string", "number", "boolean"}}
	}
}

// cutEffect returns a description without the mark of an effect at its end, and the mark, "" for none.
func cutEffect(description string) (text string, mark Effect) {
	rest, ok := strings.CutSuffix(description, "]")
	if i := strings.LastIndexByte(rest, '['); ok && i >= 0 {
		return strings.TrimSpace(rest[:i]), Effect(rest[i+1:])
	}
	return description, ""
}

// descriptions returns, by path, what Example says of each section and field: the comment lines above it and
// the comment behind it.
func descriptions() map[string]string {
	out := map[string]string{}
	var names []string // of the sections that the line is in
	var above []string
	last, lastColumn := "", 0
	for line := range strings.Lines(string(example)) {
		line = strings.TrimRight(line, "\n")
		code, comment, _ := strings.Cut(line, "#")
		text := strings.TrimSpace(comment)
		name, _, isField := strings.Cut(strings.TrimSpace(code), ":")
		switch {
		case strings.TrimSpace(line) == "":
			above = nil
		case !isField && last != "" && len(code) == lastColumn: // goes on with the comment behind the field above
			out[last] += " " + text
		case !isField:
			above, last = append(above, text), ""
		default:
			depth := (len(code) - len(strings.TrimLeft(code, " "))) / 2
			names = append(names[:depth], name)
			last, lastColumn = strings.Join(names, "."), len(code)
			if text != "" {
				above = append(above, text)
			} else {
				last = ""
			}
			out[strings.Join(names, ".")] = strings.Join(above, " ")
			above = nil
		}
	}
	return out
}
