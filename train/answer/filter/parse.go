package filter

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Parse reads the short form.
func Parse(s string) (*Expr, error) {
	if !utf8.ValidString(s) {
		return nil, fault(1, "is not UTF-8")
	}
	p := &parser{rest: s, whole: s}
	if err := p.next(); err != nil {
		return nil, err
	}
	e, err := p.disjunction(0)
	if err == nil && p.kind != end {
		err = p.fault("%s after a complete filter; join comparisons by and, or", p.said())
	}
	if err == nil {
		err = e.check(1)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// kind is that of a token.
type kind int

const (
	end    kind = iota
	word        // a name, a number, a keyword
	quoted      // a string
	symbol      // an operator, a parenthesis or a comma
)

// parser holds the token that comes next.
type parser struct {
	whole, rest string
	kind        kind
	text        string // of the token; of a string what it says
	column      int
	budget      budget
}

func (p *parser) fault(format string, args ...any) error { return fault(p.column, format, args...) }

// said is the token for a message.
func (p *parser) said() string {
	if p.kind == end {
		return "the end"
	}
	return strconv.Quote(p.text)
}

// wordLen returns how many bytes of s, from its begin, are a word: a name in any language, a number or a keyword.
func wordLen(s string) int {
	n := strings.IndexFunc(s, func(r rune) bool {
		return !unicode.In(r, unicode.Letter, unicode.Mark, unicode.Number) && !strings.ContainsRune("_-+.", r)
	})
	if n < 0 {
		return len(s)
	}
	return n
}

// symbols are the tokens that are neither words nor strings, the longer before those that they begin with.
var symbols = func() []string {
	all := []string{"(", ")", ","}
	for _, op := range comparisons {
		if wordLen(string(op)) == 0 {
			all = append(all, string(op))
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}()

// next reads a token.
func (p *parser) next() error {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	p.column = len(p.whole) - len(p.rest) + 1
	if p.rest == "" {
		p.kind, p.text = end, ""
		return nil
	}
	if c := p.rest[0]; c == '"' || c == '\'' {
		return p.nextString(c)
	}
	if n := wordLen(p.rest); n > 0 {
		p.take(word, n)
		return nil
	}
	for _, s := range symbols {
		if strings.HasPrefix(p.rest, s) {
			p.take(symbol, len(s))
			return nil
		}
	}
	r, _ := utf8.DecodeRuneInString(p.rest)
	return p.fault("%q means nothing here; strings stand in quotes", r)
}

func (p *parser) take(k kind, n int) {
	p.kind, p.text, p.rest = k, p.rest[:n], p.rest[n:]
}

// nextString reads a string in quotes, in which a backslash stands before quotes and backslashes.
func (p *parser) nextString(quote byte) error {
	var b strings.Builder
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; c {
		case quote:
			p.kind, p.text, p.rest = quoted, b.String(), p.rest[i+1:]
			return nil
		case '\\':
			if i++; i == len(p.rest) || p.rest[i] != '\\' && p.rest[i] != '"' && p.rest[i] != '\'' {
				return fault(p.column+i-1, `a backslash stands before a quote or a backslash; write \\ for one`)
			}
			b.WriteByte(p.rest[i])
		default:
			b.WriteByte(c)
		}
	}
	return p.fault("the string does not end")
}

// keyword returns the keyword that a word is, "" for none.
func keyword(s string) string {
	s = strings.ToLower(s)
	if slices.Contains([]string{string(And), string(Or), string(Not), "true", "false"}, s) || compares(Op(s)) {
		return s
	}
	return ""
}

// anyOf names the operators as a choice.
func anyOf(ops []Op) string {
	names := make([]string, len(ops))
	for i, op := range ops {
		names[i] = string(op)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func compares(op Op) bool { return slices.Contains(comparisons, op) }

func (p *parser) atKeyword(keywordOf string) bool {
	return p.kind == word && keyword(p.text) == keywordOf
}

// disjunction reads expressions between which or stands.
func (p *parser) disjunction(depth int) (*Expr, error) { return p.joined(Or, depth, p.conjunction) }

// conjunction reads expressions between which and stands.
func (p *parser) conjunction(depth int) (*Expr, error) { return p.joined(And, depth, p.one) }

func (p *parser) joined(op Op, depth int, read func(int) (*Expr, error)) (*Expr, error) {
	var of []*Expr
	for {
		e, err := read(depth)
		if err != nil {
			return nil, err
		}
		of = append(of, e)
		if !p.atKeyword(string(op)) {
			return join(op, of), nil
		}
		if err := p.next(); err != nil {
			return nil, err
		}
	}
}

// one reads a comparison, or a filter after not or in parentheses.
func (p *parser) one(depth int) (*Expr, error) {
	if depth > maxNested {
		return nil, p.fault("more than %d filters within filters", maxDepth)
	}
	switch {
	case p.atKeyword("not"):
		if err := p.next(); err != nil {
			return nil, err
		}
		e, err := p.one(depth + 1)
		return &Expr{Op: Not, Of: []*Expr{e}}, err
	case p.kind == symbol && p.text == "(":
		if err := p.next(); err != nil {
			return nil, err
		}
		e, err := p.disjunction(depth + 1)
		if err == nil && (p.kind != symbol || p.text != ")") {
			err = p.fault("%s where ) is due", p.said())
		}
		if err != nil {
			return nil, err
		}
		return e, p.next()
	}
	return p.comparison()
}

func (p *parser) comparison() (*Expr, error) {
	if p.kind != quoted && (p.kind != word || keyword(p.text) != "") {
		return nil, p.fault("%s where an attribute is due", p.said())
	}
	e := &Expr{Attribute: p.text, column: p.column}
	if err := p.next(); err != nil {
		return nil, err
	}
	e.Op = Op(p.text)
	if p.kind == word {
		e.Op = Op(keyword(p.text))
	}
	if p.kind == quoted || !compares(e.Op) {
		return nil, p.fault("%s where an operator is due: %s", p.said(), anyOf(comparisons))
	}
	err := p.next()
	switch {
	case err != nil || e.Op == Exists:
	case e.Op == In:
		err = p.list(e)
	default:
		err = p.value(e)
	}
	if err != nil {
		return nil, err
	}
	return e, p.budget.spend(e)
}

// list reads values in parentheses.
func (p *parser) list(e *Expr) error {
	if p.kind != symbol || p.text != "(" {
		return p.fault(`%s where ( is due, as in brand in ("a", "b")`, p.said())
	}
	for {
		if err := p.next(); err != nil {
			return err
		}
		if err := p.value(e); err != nil {
			return err
		}
		switch {
		case p.kind == symbol && p.text == ")":
			return p.next()
		case p.kind != symbol || p.text != ",":
			return p.fault("%s where , or ) is due", p.said())
		}
	}
}

// value reads a number, a string, true or false.
func (p *parser) value(e *Expr) error {
	switch {
	case p.kind == quoted:
		e.Values = append(e.Values, p.text)
	case p.atKeyword("true"), p.atKeyword("false"):
		e.Values = append(e.Values, p.atKeyword("true"))
	case p.kind == word && strings.ContainsRune("0123456789+-.", rune(p.text[0])):
		f, err := strconv.ParseFloat(p.text, 64)
		if err != nil || math.IsInf(f, 0) {
			return p.fault("%s is no number; strings stand in quotes", p.said())
		}
		e.Values = append(e.Values, f+0) // 0 for -0
	default:
		return p.fault("%s where a value is due; strings stand in quotes", p.said())
	}
	return p.next()
}
