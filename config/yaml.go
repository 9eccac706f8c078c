package config

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// YAML writes a configuration file with the fields that differ from the defaults, and those that comments names, each
// below its comment. Secrets are left out: a file has them from the environment.
func (c *Config) YAML(comments map[string]string) []byte {
	usual := Default()
	before := map[string]string{}
	for _, f := range usual.Fields() {
		before[f.Path] = f.Value
	}
	var out bytes.Buffer
	var open []string // the sections that the last field stands in
	c.EachField(func(path string, v reflect.Value, _ Effect) {
		comment, named := comments[path]
		if _, secret := v.Interface().(Secret); secret || !named && before[path] == textOf(v) {
			return
		}
		steps := strings.Split(path, ".")
		sections, name := steps[:len(steps)-1], steps[len(steps)-1]
		same := 0
		for same < min(len(open), len(sections)) && open[same] == sections[same] {
			same++
		}
		for i := same; i < len(sections); i++ {
			fmt.Fprintf(&out, "%s%s:\n", strings.Repeat("  ", i), sections[i])
		}
		open = sections
		indent := strings.Repeat("  ", len(sections))
		for line := range strings.Lines(comment) {
			fmt.Fprintf(&out, "%s# %s\n", indent, strings.TrimSuffix(line, "\n"))
		}
		fmt.Fprintf(&out, "%s%s: %s\n", indent, name, scalar(v))
	})
	return out.Bytes()
}

// scalar writes the value of a field, of which a file makes it again.
func scalar(v reflect.Value) string {
	switch v.Kind() { //nolint:exhaustive // what is no text and no list is written as it prints
	case reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = scalar(v.Index(i))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.String:
		// Go's escapes are YAML's, too. A $ before { begins a variable of the environment.
		return strconv.Quote(strings.ReplaceAll(v.String(), "${", "$${"))
	}
	return fmt.Sprint(v.Interface())
}
