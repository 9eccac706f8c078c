package config

import (
	"cmp"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"giantstream/internal/suggest"
)

// excerpts quote lines of a file in faults. A line may hold a secret anywhere: in a value of any YAML style, in a
// key that is a misread value, in a comment. So they show what is known to hold none, and nothing else.
type excerpts struct {
	lines [][]rune
	// safe has, per line, what may be shown.
	safe map[int][]span
}

// span is a part of a line, from a column to before another, both from 0.
type span struct{ from, to int }

func newExcerpts(data []byte) *excerpts {
	e := &excerpts{safe: map[int][]span{}}
	for line := range strings.SplitSeq(string(data), "\n") {
		e.lines = append(e.lines, []rune(line))
	}
	return e
}

// plainText matches values of fields other than secrets that may be shown: single words. Addresses with credentials
// or a query hold other characters; several words may be settings with a password among them, as in
// host=… password=… and in {username: "me, password: …"}.
var plainText = regexp.MustCompile(`^[\p{L}\p{N}_./:+*${}\[\]<>-]*$`)

// allowValue lets a scalar be shown that starts at a line and a column, both from 1. What is spread over lines or
// has escapes stays hidden.
func (e *excerpts) allowValue(line, column int, text string) {
	if plainText.MatchString(text) {
		e.allow(line, column, `"`+text+`"`, "'"+text+"'", text)
	}
}

// allow lets the first of texts be shown that stands at a line and a column, both from 1.
func (e *excerpts) allow(line, column int, texts ...string) {
	if line < 1 || line > len(e.lines) || column < 1 {
		return
	}
	for _, text := range texts {
		from, t := column-1, []rune(text)
		to := from + len(t)
		if to <= len(e.lines[line-1]) && slices.Equal(e.lines[line-1][from:to], t) {
			e.safe[line] = append(e.safe[line], span{from, to})
			return
		}
	}
}

// maxExcerpt bounds a quoted line, in characters.
const maxExcerpt = 200

// between are the characters of YAML that may stand between what is shown.
const between = " \t\r{}[],:-"

// quote returns a line, counted from 1, up to the first character that may be part of a secret.
func (e *excerpts) quote(line int) string {
	l := e.lines[line-1]
	spans := slices.Clone(e.safe[line])
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	shown := 0
	for _, s := range spans {
		if s.from < shown || !isBetween(l[shown:s.from]) {
			break
		}
		shown = s.to
	}
	out := string(l[:shown])
	switch rest := l[shown:]; {
	case isBetween(rest):
		out += strings.TrimRight(string(rest), " \t\r")
	case shown > 0 && rest[0] == ':':
		out += ": " + masked
	case shown > 0:
		out += " " + masked
	default:
		out = masked
	}
	if r := []rune(out); len(r) > maxExcerpt {
		out = string(r[:maxExcerpt]) + " …"
	}
	return out
}

func isBetween(text []rune) bool { return strings.Trim(string(text), between) == "" }

// firstName matches the name that a line of a file begins with, which need not be YAML.
var firstName = regexp.MustCompile(`^[\s{\[-]*([a-z_0-9]+)\s*:`)

// allowFirstName lets the name of a field be shown that a line begins with, for a file of which no tree is known.
func (e *excerpts) allowFirstName(line int) {
	if line < 1 || line > len(e.lines) {
		return
	}
	text := string(e.lines[line-1])
	if m := firstName.FindStringSubmatchIndex(text); m != nil && isFieldName(text[m[2]:m[3]]) {
		// What stands before the name, and the name, are of one byte a character, but for spaces.
		from := len([]rune(text[:m[2]]))
		e.allow(line, from+1, text[m[2]:m[3]])
	}
}

// allNames are the names of sections and fields anywhere in a configuration, old ones too.
var allNames = sync.OnceValue(func() []string {
	var names []string
	var collect func(reflect.Type)
	collect = func(t reflect.Type) {
		for _, f := range reflect.VisibleFields(t) {
			if !f.IsExported() {
				continue
			}
			names = append(names, f.Tag.Get("yaml"))
			switch {
			case f.Type.Kind() == reflect.Struct:
				collect(f.Type)
			case isSections(f.Type):
				collect(f.Type.Elem())
			}
		}
	}
	collect(reflect.TypeFor[Config]())
	for path := range oldNames {
		names = append(names, path[strings.LastIndex(path, ".")+1:])
	}
	for path := range removedNames {
		names = append(names, path[strings.LastIndex(path, ".")+1:])
	}
	slices.Sort(names)
	return slices.Compact(names)
})

func isFieldName(name string) bool { return slices.Contains(allNames(), name) }

// nameShown returns a key that no field has here as errors show it: as it is if it resembles a field's name, else
// masked. A value that was not quoted is read as a key: {password: one,two} has the key two.
func nameShown(key string) string {
	if isFieldName(key) {
		return key
	}
	const extra = 2 // letters at most that a field's name does not have
	if near := suggest.Nearest(key, allNames()); near != "" && len(key) <= len(near)+extra {
		return key
	}
	return masked
}

// pathShown is nameShown for a path of names.
func pathShown(path string) string {
	names := strings.Split(path, ".")
	for i, name := range names {
		names[i] = nameShown(name)
	}
	return strings.Join(names, ".")
}

// quoted matches what the YAML library quotes in its messages, which may be part of a secret.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// libraryMessage returns a message of the YAML library without text of the file other than fields' names.
func libraryMessage(message string) string {
	return quoted.ReplaceAllStringFunc(message, func(q string) string {
		if name, err := strconv.Unquote(q); err == nil && isFieldName(name) {
			return q
		}
		return masked
	})
}
