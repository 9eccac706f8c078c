package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
)

// Bounds of a configuration file. Real ones have a few KiB and nest four deep. The parser's memory
// and time grow with the square of the nesting.
const (
	maxFile  = 256 * KiB
	maxDepth = 32
)

// Load reads the file at path, with the process's environment, changes it by assignments as Config.Set does,
// and validates the result. Faults of the content are returned as an *Error. also finds faults that this
// package cannot know, by the paths of fields.
func Load(path string, assignments []string, also ...func(*Config) []Fault) (Config, error) {
	return Default().Load(path, assignments, also...)
}

// Load is as the function Load, with c in place of the defaults.
func (c Config) Load(path string, assignments []string, also ...func(*Config) []Fault) (Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return Config{}, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(maxFile)+1))
	if err != nil {
		return Config{}, fmt.Errorf("configuration: %w", err)
	}
	c, err = parse(c, data, os.LookupEnv, assignments, also...)
	var faults *Error
	if errors.As(err, &faults) {
		faults.File = path
	}
	return c, err
}

// Parse reads and validates the content of a file. env looks up a variable of the environment, as
// os.LookupEnv does.
func Parse(data []byte, env func(string) (string, bool), also ...func(*Config) []Fault) (Config, error) {
	return parse(Default(), data, env, nil, also...)
}

// Overlay returns a configuration that differs from c in the fields that data, the content of a file, gives. Variables
// of the environment are not expanded: data may come from another machine.
func (c *Config) Overlay(data []byte, also ...func(*Config) []Fault) (Config, error) {
	return parse(*c, data, func(string) (string, bool) { return "", false }, nil, also...)
}

// parse decodes a file over c.
func parse(c Config, data []byte, env func(string) (string, bool), assignments []string,
	also ...func(*Config) []Fault) (Config, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // as editors on Windows write it
	d := newDecoder(&c, data, env)
	if body := d.syntax(data); body != nil {
		d.value("", body, d.config)
	}
	c.renamed, c.unset = d.renamed, d.unset
	for _, f := range c.set(assignments, env) {
		f.Message = setFile + ": " + f.Message
		d.faults = append(d.faults, f)
	}
	for _, a := range assignments {
		path, _, _ := strings.Cut(a, "=")
		path = strings.TrimSpace(path)
		d.at[path] = position{} // the file's line is not to blame
		c.unset = slices.DeleteFunc(c.unset, func(f Fault) bool { return f.Path == path })
	}
	faults := c.faults()
	for _, find := range also {
		faults = append(faults, find(&c)...)
	}
	d.place(faults)
	if len(d.faults) == 0 {
		return c, nil
	}
	for i := range d.faults {
		if f := &d.faults[i]; f.Line > 0 && f.Line <= len(d.excerpts.lines) {
			f.Excerpt = d.excerpts.quote(f.Line)
		}
	}
	slices.SortStableFunc(d.faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return Config{}, &Error{Faults: d.faults}
}

// syntax parses the file; nil means that it is empty or faulty.
func (d *decoder) syntax(data []byte) ast.Node {
	if int64(len(data)) > int64(maxFile) {
		d.faults = append(d.faults, Fault{Message: fmt.Sprintf("is larger than %v", maxFile)})
		return nil
	}
	tokens := lexer.Tokenize(string(data))
	if t := tooDeep(tokens); t != nil {
		d.faults = append(d.faults, Fault{Line: t.Position.Line, Column: t.Position.Column,
			Message: fmt.Sprintf("is nested deeper than %d levels", maxDepth)})
		return nil
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		f := Fault{Message: "is not YAML"}
		var syntax *yaml.SyntaxError
		if errors.As(err, &syntax) {
			// The error's own text would quote lines of the file, secrets and all.
			p := syntax.GetToken().Position
			f = Fault{Line: p.Line, Column: p.Column, Message: libraryMessage(syntax.GetMessage())}
			d.excerpts.allowFirstName(p.Line)
			lines := strings.Split(string(data), "\n")
			if p.Line <= len(lines) && strings.Contains(lines[p.Line-1], "${") {
				f.Message += `; inside { } and [ ] quote what holds a variable: "${NAME}"`
			}
		}
		d.faults = append(d.faults, f)
		return nil
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			d.fault("", doc.Body, "a second document; a configuration is one")
			break
		}
		body = doc.Body
	}
	return body
}

// place adds faults of the content, with their positions in the file. A field that could not be decoded
// is not reported twice.
func (d *decoder) place(faults []Fault) {
	broken := map[string]bool{}
	for _, f := range d.faults {
		broken[f.Path] = true
	}
	for _, f := range faults {
		if broken[f.Path] {
			continue
		}
		// A field that the file leaves out is reported at its section.
		for path := f.Path; path != ""; path = parent(path) {
			if p, ok := d.at[path]; ok {
				f.Line, f.Column = p.line, p.column
				break
			}
		}
		d.faults = append(d.faults, f)
	}
}

// parent of "kafka.brokers[1]" is "kafka.brokers", then "kafka", then "".
func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}
