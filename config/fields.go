package config

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Effect says when a change of a field takes effect.
type Effect string

// The effects, from the soonest to the latest.
const (
	// Live: at once, in a service that runs.
	Live Effect = "live"
	// Restart: with the next start of the process.
	Restart Effect = "restart"
	// NextGeneration: with the next generation that begins after a restart, whose embeddings are the same as without.
	NextGeneration Effect = "generation"
	// Encoding: with the next generation that begins after a restart, because the field decides its embeddings.
	Encoding Effect = "encoding"
	// Graph: never in a store that exists, because the field decides how records become the graph.
	Graph Effect = "graph"
	// NewPipeline: never in a store that exists, because the field decides where and in how many shards the graph is.
	NewPipeline Effect = "pipeline"
)

// Refusal says what to do instead of changing a field of a service that runs; "" for a field that is Live.
func (e Effect) Refusal() string {
	switch e {
	case Live:
		return ""
	case NextGeneration, Encoding:
		return "needs a restart, and 'giantstream rebuild' or the next refresh, which makes a generation with it"
	case Graph:
		return "decides what the store holds: 'giantstream remap' reads the records again with it, into a store beside"
	case NewPipeline:
		return "decides what the store holds: it needs another store; 'giantstream reshard' writes one of other shards"
	}
	return "needs a restart"
}

// Field is one setting of a configuration, as a file would have it.
type Field struct {
	Path string `json:"field"`
	// Value is *** for a secret that is set.
	Value string `json:"value"`
	// Effect is when a change of it takes effect.
	Effect Effect `json:"effect"`
}

// Fields returns every setting, in the order of Example. Configurations are equal where their fields are,
// but for secrets, which are shown as set or not.
func (c *Config) Fields() (out []Field) {
	c.EachField(func(path string, v reflect.Value, effect Effect) {
		out = append(out, Field{path, textOf(v), effect})
	})
	return out
}

// textOf returns the text of a field, of which fieldFrom makes the field again.
func textOf(v reflect.Value) string {
	if v.Kind() != reflect.Slice {
		return fmt.Sprint(v.Interface())
	}
	if isSections(v.Type()) {
		return textOfSections(v)
	}
	parts := make([]string, v.Len())
	for i := range parts {
		parts[i] = fmt.Sprint(v.Index(i).Interface())
		// A column may be named "Price, EUR", which is not the two columns Price and EUR.
		if strings.ContainsAny(parts[i], `,"`) || parts[i] == "" {
			parts[i] = strconv.Quote(parts[i])
		}
	}
	return strings.Join(parts, listSeparator)
}

const listSeparator = ", "

// isSections says whether a field is a list of sections.
func isSections(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct
}

// textOfSections returns the sections of a list as a file may have them on one line.
func textOfSections(v reflect.Value) string {
	var sections []string
	for i := range v.Len() {
		var fields []string
		eachField(v.Index(i), "", func(name string, field reflect.Value, _ Effect) {
			text := textOf(field)
			if field.Kind() == reflect.Slice {
				text = "[" + text + "]"
			}
			fields = append(fields, name+": "+text)
		})
		sections = append(sections, "{"+strings.Join(fields, listSeparator)+"}")
	}
	return strings.Join(sections, listSeparator)
}

// fieldFrom sets a field to a text that textOf has returned.
func fieldFrom(v reflect.Value, text string) error {
	if v.Kind() != reflect.Slice {
		return setScalar(v, text)
	}
	list := reflect.MakeSlice(v.Type(), 0, 4)
	for more := text != ""; more; {
		var item string
		if quoted, err := strconv.QuotedPrefix(text); err == nil {
			if item, err = strconv.Unquote(quoted); err != nil {
				return err
			}
			text = text[len(quoted):]
			if text, more = strings.CutPrefix(text, listSeparator); !more && text != "" {
				return fmt.Errorf("%q follows an item in quotes", text)
			}
		} else {
			item, text, more = strings.Cut(text, listSeparator)
		}
		one := reflect.New(v.Type().Elem()).Elem()
		if err := setScalar(one, item); err != nil {
			return err
		}
		list = reflect.Append(list, one)
	}
	v.Set(list)
	return nil
}

// Restore sets fields to what Values has returned for another configuration, of this release or an older one. A field
// that this release does not have is an error.
func (c *Config) Restore(values map[string]string) error {
	fields := map[string]reflect.Value{}
	c.EachField(func(path string, v reflect.Value, _ Effect) { fields[path] = v })
	for _, path := range slices.Sorted(maps.Keys(values)) {
		now := cmp.Or(oldNames[path], path)
		v, ok := fields[now]
		if !ok {
			return fmt.Errorf("%s: this release has no such field", path)
		}
		if err := fieldFrom(v, values[path]); err != nil {
			return fmt.Errorf("%s: %q: %w", path, values[path], err)
		}
	}
	return nil
}

// Values returns the settings with an effect, by path.
func (c *Config) Values(effect Effect) map[string]string {
	values := map[string]string{}
	for _, f := range c.Fields() {
		if f.Effect == effect {
			values[f.Path] = f.Value
		}
	}
	return values
}

// Change is a field of which two configurations have different values.
type Change struct {
	Path string `json:"field"`
	From string `json:"from"`
	// To is *** (another) for a secret that is set on both sides.
	To     string `json:"to"`
	Effect Effect `json:"effect"`
}

// Diff returns the fields that differ between two configurations, in the order of Example.
func Diff(from, to *Config) []Change {
	out := []Change{}
	before, secrets := from.Fields(), from.secrets()
	hidden := to.secrets()
	for i, f := range to.Fields() {
		was := before[i].Value
		if f.Value == was && secrets[f.Path] != hidden[f.Path] {
			f.Value += " (another)"
		}
		if f.Value != was {
			out = append(out, Change{f.Path, was, f.Value, f.Effect})
		}
	}
	return out
}

// secrets returns the values of the secrets, by path; those of a list of sections together.
func (c *Config) secrets() map[string]Secret {
	values := map[string]Secret{}
	c.EachField(func(path string, v reflect.Value, _ Effect) {
		if s, ok := v.Interface().(Secret); ok {
			values[path] = s
		}
		if isSections(v.Type()) {
			for i := range v.Len() {
				eachField(v.Index(i), "", func(_ string, one reflect.Value, _ Effect) {
					if s, ok := one.Interface().(Secret); ok {
						values[path] += s + "\n"
					}
				})
			}
		}
	})
	return values
}

// LiveChanges returns what a running service has to change to go from one configuration to another. If a field
// differs that is not Live, nothing may change: the error is an *Error that names each such field, and what its
// change needs.
func LiveChanges(from, to *Config) ([]Change, error) {
	changes := Diff(from, to)
	var faults []Fault
	for _, c := range changes {
		if why := c.Effect.Refusal(); why != "" {
			faults = append(faults, Fault{Path: c.Path,
				Message: fmt.Sprintf("cannot change from %s to %s while the service runs: it %s", cmp.Or(c.From, `""`),
					cmp.Or(c.To, `""`), why)})
		}
	}
	if len(faults) > 0 {
		return nil, &Error{Faults: faults}
	}
	return changes, nil
}
