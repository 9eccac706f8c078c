package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"giantstream/internal/suggest"
)

// decoder fills a Config from the syntax tree of a file. Unlike the decoder of the YAML library it
// continues after a fault, and it remembers where each field stands, so that Validate's faults can
// be placed too.
type decoder struct {
	config   reflect.Value // the Config
	env      func(string) (string, bool)
	faults   []Fault
	at       map[string]position // by path
	excerpts *excerpts
	// renamed has a hint for each field that is given by its old name, or is no more.
	renamed []string
	// unset has the fields of sinks that refer to variables which are not set.
	unset []Fault
}

func newDecoder(c *Config, data []byte, env func(string) (string, bool)) *decoder {
	return &decoder{config: reflect.ValueOf(c).Elem(), env: env, at: map[string]position{}, excerpts: newExcerpts(data)}
}

type position struct{ line, column int }

func (d *decoder) fault(path string, node ast.Node, format string, args ...any) {
	p := node.GetToken().Position
	d.faults = append(d.faults,
		Fault{Path: path, Line: p.Line, Column: p.Column, Message: fmt.Sprintf(format, args...)})
}

// value decodes node into v, the field at path.
func (d *decoder) value(path string, node ast.Node, v reflect.Value) {
	p := node.GetToken().Position
	d.at[path] = position{p.Line, p.Column}
	switch node.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		d.fault(path, node, "anchors, aliases and tags are not supported; write the value out")
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.section(path, node, v)
	case reflect.Slice:
		d.list(path, node, v)
	default:
		d.scalar(path, node, v)
	}
}

// section decodes a mapping into a struct. If all lines of a section are commented out, its value
// is null and the defaults stay.
func (d *decoder) section(path string, node ast.Node, v reflect.Value) {
	var entries []*ast.MappingValueNode
	switch node := node.(type) {
	case *ast.NullNode:
		return
	case *ast.MappingNode:
		entries = node.Values
	case *ast.MappingValueNode:
		entries = []*ast.MappingValueNode{node}
	default:
		d.fault(path, node, "must be a section: %s", strings.Join(fieldNames(v.Type()), ", "))
		return
	}
	for _, e := range entries {
		key := e.Key.GetToken()
		name := key.Value
		if nameShown(name) == name {
			d.excerpts.allow(key.Position.Line, key.Position.Column, `"`+name+`"`, "'"+name+"'", name)
		}
		child := name
		if path != "" {
			child = path + "." + name
		}
		if now, ok := oldNames[child]; ok {
			d.renamed = append(d.renamed, fmt.Sprintf("line %d: %s is called %s now", key.Position.Line, child, now))
			d.givenOnce(now, e, d.field(now))
			continue
		}
		if gone, ok := removedNames[child]; ok {
			if raw, _ := scalarText(e.Value); gone.only != "" && raw != gone.only {
				d.fault(child, e.Key, "is no more: %s; remove this line", gone.why)
				continue
			}
			d.renamed = append(d.renamed, fmt.Sprintf("line %d: %s is no more and says nothing: %s",
				key.Position.Line, child, gone.why))
			continue
		}
		i := slices.Index(fieldNames(v.Type()), name)
		if i < 0 {
			near := suggest.Nearest(name, fieldNames(v.Type()))
			if near != "" && nameShown(name) == name {
				near = fmt.Sprintf("did you mean %s? ", near)
			} else {
				near = ""
			}
			d.fault(strings.TrimSuffix(child, name)+nameShown(name), e.Key, "unknown field; %sknown here: %s", near,
				strings.Join(fieldNames(v.Type()), ", "))
			continue
		}
		d.givenOnce(child, e, v.Field(i))
	}
}

// oldNames are the fields that had another name, which stays accepted with a hint.
var oldNames = map[string]string{
	"ingest.nodes.label": "ingest.nodes.class",
	"featurize.pifa.dim": "embedding.dim",
}

// removedNames are the fields that are no more, and what holds in their place. A file may still have them, with a hint.
// With another value than only, unless that is "", the file asks for something that must not be ignored: a fault.
var removedNames = map[string]struct{ why, only string }{
	"stream.commit": {why: "each shard commits its windows by itself; a store that was written with 'group' is " +
		"refused, with a sentence that says how to write it again"},
	"refresh.mode": {why: "every refresh makes all of a generation"},
	"sink.canary":  {"a generation is tried on a topic of its own, which sink.canary_topic names", "0"},
}

// givenOnce decodes the value of a field, unless the file has given it by another name.
func (d *decoder) givenOnce(path string, e *ast.MappingValueNode, v reflect.Value) {
	if _, given := d.at[path]; given {
		d.fault(path, e.Key, "is given twice, once by its old name; keep %s", path)
		return
	}
	d.value(path, e.Value, v)
}

// field returns the field of the configuration at path.
func (d *decoder) field(path string) reflect.Value {
	v := d.config
	for name := range strings.SplitSeq(path, ".") {
		v = v.Field(slices.Index(fieldNames(v.Type()), name))
	}
	return v
}

// fieldNames returns the names of a section's fields in the file.
func fieldNames(t reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if f.IsExported() {
			names = append(names, f.Tag.Get("yaml"))
		}
	}
	return names
}

// list decodes a sequence, or a single scalar into a List: an empty one is none.
func (d *decoder) list(path string, node ast.Node, v reflect.Value) {
	entries := []ast.Node{node}
	if sequence, ok := node.(*ast.SequenceNode); ok {
		entries = sequence.Values
	} else if v.Type() != reflect.TypeFor[List]() {
		d.fault(path, node, "must be a list, in brackets")
		return
	} else if text, ok := scalarText(node); ok && text == "" {
		entries = nil
	}
	out := reflect.MakeSlice(v.Type(), len(entries), len(entries))
	for i, e := range entries {
		child := path
		if node != e {
			child = elementPath(path, i)
		}
		d.value(child, e, out.Index(i))
	}
	v.Set(out)
}

func (d *decoder) scalar(path string, node ast.Node, v reflect.Value) {
	raw, ok := scalarText(node)
	if !ok {
		if _, null := node.(*ast.NullNode); null {
			d.fault(path, node, `has no value; write "" for an empty one, or leave the line out for the default`)
		} else if v.Kind() == reflect.String {
			d.fault(path, node, "must be a single value; one with a colon or a bracket in it stands in quotes")
		} else {
			d.fault(path, node, "must be a single value")
		}
		return
	}
	if _, secret := v.Interface().(Secret); !secret {
		p := node.GetToken().Position
		d.excerpts.allowValue(p.Line, p.Column, raw)
	}
	text, err := expandFor(v, raw, d.env)
	parsed := reflect.New(v.Type()).Elem()
	if err == nil {
		err = setScalar(parsed, text)
	}
	if err != nil && ofOneSink(path) && refersToUnset(raw, d.env) {
		d.unset = append(d.unset, Fault{Path: path, Message: err.Error()})
		return
	}
	if err != nil {
		d.fault(path, node, "%v", err)
		return // with the default, which raises no further faults
	}
	v.Set(parsed)
}

// scalarText returns a scalar as the file has it, without quotes.
func scalarText(node ast.Node) (string, bool) {
	switch node := node.(type) {
	case *ast.StringNode:
		return node.Value, true
	case *ast.LiteralNode:
		return node.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return node.GetToken().Value, true
	}
	return "", false
}

// setScalar parses text as the type of v. Its errors leave the text out, which may have come from
// the environment.
func setScalar(v reflect.Value, text string) error {
	var err error
	switch p := v.Addr().Interface().(type) {
	case *string:
		*p = text
	case *Secret:
		*p = Secret(text)
	case *Size:
		*p, err = ParseSize(text)
	case *time.Duration:
		if *p, err = time.ParseDuration(text); err != nil {
			err = fmt.Errorf("must be a duration such as 500ms, 30s or 24h")
		}
	case *bool:
		if *p = text == "true"; !*p && text != "false" {
			err = fmt.Errorf("must be true or false")
		}
	case *int:
		if *p, err = strconv.Atoi(text); err != nil {
			err = fmt.Errorf("must be a whole number")
		}
	case *uint64:
		if *p, err = strconv.ParseUint(text, 10, 64); err != nil {
			err = fmt.Errorf("must be a whole number, 0 or more")
		}
	case *float64:
		if *p, err = strconv.ParseFloat(text, 64); err != nil {
			err = fmt.Errorf("must be a number")
		}
	default:
		err = fmt.Errorf("has a type that configuration files cannot give: %s", v.Type())
	}
	return err
}
