package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"giantstream/internal/suggest"
)

// Set changes fields of the configuration: each assignment is a field's path, = and its value, as in
// window.time=2s. Lists are separated by commas, in brackets or not. ${NAME} is expanded as in a file. The
// error is an *Error with all faults of the assignments. Set does not validate: call Validate after the last
// change.
func (c *Config) Set(assignments ...string) error {
	faults := c.set(assignments, os.LookupEnv)
	if len(faults) == 0 {
		return nil
	}
	return &Error{File: setFile, Faults: faults}
}

// setFile stands where errors of files have the name of the file.
const setFile = "--set"

func (c *Config) set(assignments []string, env func(string) (string, bool)) (faults []Fault) {
	fields := map[string]reflect.Value{}
	c.EachField(func(path string, v reflect.Value, _ Effect) { fields[path] = v })
	for _, a := range assignments {
		path, text, ok := strings.Cut(a, "=")
		path = strings.TrimSpace(path)
		if now, old := oldNames[path]; old {
			path = now
		}
		gone, removed := removedNames[path]
		v, known := fields[path]
		var err error
		switch {
		case !ok:
			// The text may be a value alone, which may be secret.
			err = fmt.Errorf("must be a field, = and its value, as in window.time=2s")
			path = ""
		case removed:
			err = fmt.Errorf("is no more: %s", gone.why)
		case !known:
			err = fmt.Errorf("unknown field%s", nearestField(path, fields))
			path = pathShown(path)
		default:
			err = setText(v, text, env)
		}
		if err != nil {
			faults = append(faults, Fault{Path: path, Message: err.Error()})
		}
	}
	return faults
}

// nearestField says which field may have been meant, or which fields a section has.
func nearestField(path string, fields map[string]reflect.Value) string {
	var names, below []string
	for name := range fields {
		names = append(names, name)
		if rest, ok := strings.CutPrefix(name, path+"."); ok {
			below = append(below, rest)
		}
	}
	slices.Sort(names)
	slices.Sort(below)
	if len(below) > 0 {
		return "; it is a section with the fields " + strings.Join(below, ", ")
	}
	if name := suggest.Nearest(path, names); name != "" {
		return "; did you mean " + name + "?"
	}
	return "; 'giantstream config example' has all"
}

// setText parses text as a file's scalar, or as a list.
func setText(v reflect.Value, text string, env func(string) (string, bool)) error {
	if v.Kind() != reflect.Slice {
		return setExpanded(v, text, env)
	}
	if isSections(v.Type()) {
		return errors.New("is a list of sections: write it into the file")
	}
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
		text = strings.TrimSuffix(inner, "]")
	}
	list := reflect.MakeSlice(v.Type(), 0, 4)
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		one := reflect.New(v.Type().Elem()).Elem()
		if err := setExpanded(one, part, env); err != nil {
			return err
		}
		list = reflect.Append(list, one)
	}
	v.Set(list)
	return nil
}

func setExpanded(v reflect.Value, raw string, env func(string) (string, bool)) error {
	text, err := expandFor(v, raw, env)
	if err != nil {
		return err
	}
	parsed := reflect.New(v.Type()).Elem()
	if err := setScalar(parsed, text); err != nil {
		return err
	}
	v.Set(parsed)
	return nil
}

// EachField calls f for every field that is no section, in the order of Example. v can be set.
func (c *Config) EachField(f func(path string, v reflect.Value, effect Effect)) {
	eachField(reflect.ValueOf(c).Elem(), "", f)
}

func eachField(v reflect.Value, path string, f func(path string, v reflect.Value, effect Effect)) {
	for _, field := range reflect.VisibleFields(v.Type()) {
		if !field.IsExported() {
			continue
		}
		child := field.Tag.Get("yaml")
		if path != "" {
			child = path + "." + child
		}
		if value := v.FieldByIndex(field.Index); value.Kind() == reflect.Struct {
			eachField(value, child, f)
		} else {
			f(child, value, Effect(field.Tag.Get("effect")))
		}
	}
}
