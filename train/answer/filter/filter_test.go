package filter

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func parsed(t testing.TB, s string) *Expr {
	t.Helper()
	e, err := Parse(s)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return e
}

// The short form is read as people write it, and written in one way. JSON says the same.
func TestForms(t *testing.T) {
	for short, want := range map[string][2]string{
		`price<50 and stock>0 and not category^="Sale"`: {`price<50 and stock>0 and not category^="Sale"`,
			`{"and":[{"attribute":"price","op":"<","value":50},{"attribute":"stock","op":">","value":0},` +
				`{"not":{"attribute":"category","op":"^=","value":"Sale"}}]}`},
		` a = 1 or b=2 AND c != -2.50 `: {`a=1 or b=2 and c!=-2.5`, `{"or":[{"attribute":"a","op":"=","value":1},` +
			`{"and":[{"attribute":"b","op":"=","value":2},{"attribute":"c","op":"!=","value":-2.5}]}]}`},
		`(a=1 or (b=2)) and (c=true and d=false)`: {`(a=1 or b=2) and c=true and d=false`,
			`{"and":[{"or":[{"attribute":"a","op":"=","value":1},{"attribute":"b","op":"=","value":2}]},` +
				`{"attribute":"c","op":"=","value":true},{"attribute":"d","op":"=","value":false}]}`},
		`not(a exists or not b>=1e21)`: {`not (a exists or not b>=1e+21)`, `{"not":{"or":[{"attribute":"a",` +
			`"op":"exists"},{"not":{"attribute":"b","op":"\u003e=","value":1e+21}}]}}`},
		`brand IN ('O\'Neill',"a \"b\" \\")`: {`brand in ("O'Neill", "a \"b\" \\")`,
			`{"attribute":"brand","op":"in","value":["O'Neill","a \"b\" \\"]}`},
		`'not'=1 and tags contains "ä,b"`: {`"not"=1 and tags contains "ä,b"`,
			`{"and":[{"attribute":"not","op":"=","value":1},{"attribute":"tags","op":"contains","value":"ä,b"}]}`},
		`größe>=42 and "価格 (円)"<5000 and 'ÉTAT'^="neuf"`: {`größe>=42 and "価格 (円)"<5000 and ÉTAT^="neuf"`,
			`{"and":[{"attribute":"größe","op":"\u003e=","value":42},{"attribute":"価格 (円)","op":"<","value":5000},` +
				`{"attribute":"ÉTAT","op":"^=","value":"neuf"}]}`},
	} {
		e := parsed(t, short)
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		data = []byte(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(data)))
		want[1] = strings.ReplaceAll(want[1], `\u003e`, ">")
		if got := e.String(); got != want[0] || string(data) != want[1] {
			t.Errorf("%s\n is %s\nwant %s\n and %s\nwant %s", short, got, want[0], data, want[1])
		}
		var back Expr
		if err := json.Unmarshal(data, &back); err != nil || back.String() != want[0] {
			t.Errorf("%s: from JSON %s, %v", short, &back, err)
		}
	}
	var short Expr
	if err := json.Unmarshal([]byte(`"price < 5"`), &short); err != nil || short.String() != "price<5" {
		t.Errorf("a string in JSON is %s, %v", &short, err)
	}
}

// Clients that are made of the page of the endpoints know every operator.
func TestOpenAPIHasTheOperators(t *testing.T) {
	page, err := os.ReadFile("../openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`"op": \{"enum": (\[.*?\])\}`).FindSubmatch(page)
	if found == nil {
		t.Fatal("openapi.json has no operators")
	}
	var has []Op
	if err := json.Unmarshal(found[1], &has); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(has, comparisons) {
		t.Errorf("openapi.json has %q, filters have %q", has, comparisons)
	}
}

// What is wrong is told with its place.
func TestFaults(t *testing.T) {
	deep := strings.Repeat("not ", 40) + "a=1"
	for short, want := range map[string]string{
		``:                  `column 1: the end where an attribute is due`,
		`price`:             `column 6: the end where an operator is due`,
		`price<`:            `column 7: the end where a value is due`,
		`price<fifty`:       `column 7: "fifty" where a value is due; strings stand in quotes`,
		`price<5.5.5`:       `column 7: "5.5.5" is no number`,
		`price<1e999`:       `column 7: "1e999" is no number`,
		`price<5 stock>0`:   `column 9: "stock" after a complete filter`,
		`price==5`:          `column 7: "=" where a value is due`,
		`price~5`:           `column 6: '~' means nothing here`,
		`größe 5`:           `column 9: "5" where an operator is due: =, !=, <`,
		`a "="5`:            `column 3: "=" where an operator is due`,
		`price and`:         `column 7: "and" where an operator is due`,
		`and=5`:             `column 1: "and" where an attribute is due`,
		`(price<5`:          `column 9: the end where ) is due`,
		`brand="Nike`:       `column 7: the string does not end`,
		`brand="a\b"`:       `column 9: a backslash`,
		`brand="a\`:         `column 9: a backslash`,
		`brand in "a"`:      `column 10: "a" where ( is due`,
		`brand in ()`:       `column 11: ")" where a value is due`,
		`brand in ("a" "b"`: `column 15: "b" where , or ) is due`,
		"a=\"\xff\"":        `column 1: is not UTF-8`,
		`5<price`:           `column 3: "price" where a value is due`,
		deep:                `more than 32 filters within filters`,
		strings.Repeat("(", 200) + "a=1" + strings.Repeat(")", 200): `more than`,
		strings.Repeat("a=1 or ", 64) + "a=1":                       `column 449: a filter has at most 64`,
		"a in (1" + strings.Repeat(",1", 1000) + ")":                `column 1: a filter has at most 64`,
	} {
		_, err := Parse(short)
		if !errors.As(err, new(*Error)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", short, err, want)
		}
	}
	const noValue = `a value is a number, a string, true or false`
	for data, want := range map[string]string{
		`{}`:                                     `one of and, or, not`,
		`5`:                                      `where: it is not an object, but of type number`,
		`{"and":[]}`:                             `and has an empty list`,
		`{"not":5}`:                              `where: it is not an object, but of type number`,
		`{"and":5}`:                              `where: and is not a list, but of type number`,
		`{"or":[{"attribute":["a"]}]}`:           `where: attribute is not a string, but of type array`,
		`{"attribute":"a","op":1}`:               `where: op is not a string, but of type number`,
		`{"a":5}`:                                `unknown field`,
		`{"op":"="}`:                             `one of and, or, not`,
		`{"attribute":"a"}`:                      `"" is no operator`,
		`"price<"`:                               `column 7`,
		`{"not":` + deep[:4]:                     `where`,
		`{"attribute":"a","op":"=","and":[]}`:    `one of and, or, not`,
		`{"attribute":"a","op":"and","value":1}`: `"and" is no operator`,
		`{"attribute":"a","op":"="}`:             `have one value`,
		`{"attribute":"a","op":"exists","value":1}`:                                                 `have one value`,
		`{"attribute":"a","op":"in","value":[]}`:                                                    `have one value`,
		`{"attribute":"a","op":"in","value":[null]}`:                                                noValue,
		`{"attribute":"a","op":"=","value":{}}`:                                                     noValue,
		strings.Repeat(`{"not":`, 40) + `{"attribute":"a","op":"exists"}` + strings.Repeat(`}`, 40): `more than 32`,
	} {
		if err := new(Expr).UnmarshalJSON([]byte(data)); !errors.As(err, new(*Error)) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", data, err, want)
		}
	}
}

// What Parse takes it writes as it reads it, and in JSON as well.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`price<50 and stock>0 and not category^="Sale"`, `a in (1, "b", true) or (c exists)`,
		`"a b"!='\\\'' and not not (a=1 or b=2 and (c=3 or d=4))`, `x contains "\"`, `in^="x"`, "\x00", `-1=-0`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := Parse(s)
		if err != nil {
			return
		}
		short := e.String()
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var back Expr
		if err := json.Unmarshal(data, &back); err != nil || back.String() != short {
			t.Errorf("%q is %s, and after JSON %s (%v)", s, short, &back, err)
		}
		if again, err := Parse(short); err != nil || again.String() != short {
			t.Errorf("%q is %s, and then %v (%v)", s, short, again, err)
		}
		small := NewTable([]Attribute{{"a", Number}, {"b", Strings}, {"category", String}})
		if set, err := small.Select(e, 70); err == nil && (len(set) != 2 || set[1]>>6 != 0) {
			t.Errorf("%q selects %x of 70 nodes", s, set)
		}
	})
}

// random draws a filter.
func random(r *rand.Rand, depth int) *Expr {
	pick := func(of ...any) any { return of[r.IntN(len(of))] }
	if depth > 0 && r.IntN(3) > 0 {
		switch r.IntN(3) {
		case 0:
			return &Expr{Op: Not, Of: []*Expr{random(r, depth-1)}}
		case 1:
			return join(And, []*Expr{random(r, depth-1), random(r, depth-1)})
		default:
			return join(Or, []*Expr{random(r, depth-1), random(r, depth-1), random(r, depth-1)})
		}
	}
	e := &Expr{}
	value := func() any { return nil }
	switch r.IntN(5) {
	case 0:
		e.Attribute, e.Op = "price", pick(Equal, Unequal, Less, AtMost, More, AtLeast, In, Exists).(Op)
		value = func() any { return float64(r.IntN(6)) - 2.5*float64(r.IntN(2)) }
	case 1:
		e.Attribute, e.Op = "since", pick(Equal, Unequal, Less, AtMost, More, AtLeast, In, Exists).(Op)
		value = func() any { return pick("2026-03-01", "2026-03-01T01:00:00+01:00", times[1], times[2]) }
	case 2:
		e.Attribute, e.Op = "new", pick(Equal, Unequal, In, Exists).(Op)
		value = func() any { return r.IntN(2) == 0 }
	case 3:
		e.Attribute, e.Op = "brand", pick(Equal, Unequal, In, Begins, Contains, Exists).(Op)
		value = func() any { return pick("", "a", "ab", "b", "abc", "c") }
	case 4:
		e.Attribute, e.Op = "path", pick(Begins, Contains, Exists).(Op)
		value = func() any { return pick("", "a", "ab", "b", "abc", "c") }
	}
	n := 1
	if e.Op == In {
		n = 1 + r.IntN(3)
	} else if e.Op == Exists {
		n = 0
	}
	for range n {
		e.Values = append(e.Values, value())
	}
	return e
}
