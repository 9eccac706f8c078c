package filter

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	times     = []string{"2026-02-28T23:59:59.999999Z", "2026-03-01T00:00:00Z", "2026-03-01T00:00:00.5Z"}
	someTypes = []Attribute{{"price", Number}, {"since", Time}, {"new", Boolean}, {"brand", String}, {"path", Strings}}
)

// randomNode draws attributes as rows have them.
func randomNode(r *rand.Rand) map[string]any {
	words := []string{"a", "ab", "b", "abc", "cab"}
	all := map[string]any{"price": float64(r.IntN(6)) - 2.5*float64(r.IntN(2)), "since": times[r.IntN(3)],
		"new": r.IntN(2) == 0, "brand": words[r.IntN(5)], "other": "kept by nobody"}
	path := []any{}
	for range r.IntN(3) {
		path = append(path, words[r.IntN(5)])
	}
	all["path"] = path
	for name := range all {
		if r.IntN(3) == 0 {
			delete(all, name)
		}
	}
	return all
}

// matches is Select for one node, in the plainest way.
func matches(e *Expr, node map[string]any) bool {
	switch e.Op {
	case And:
		return !slices.ContainsFunc(e.Of, func(one *Expr) bool { return !matches(one, node) })
	case Or:
		return slices.ContainsFunc(e.Of, func(one *Expr) bool { return matches(one, node) })
	case Not:
		return !matches(e.Of[0], node)
	}
	have, ok := node[e.Attribute]
	if !ok || e.Op == Exists {
		return ok
	}
	if list, is := have.([]any); is {
		return slices.ContainsFunc(list, func(one any) bool {
			return e.Op == Contains && one == e.Values[0] ||
				e.Op == Begins && strings.HasPrefix(one.(string), e.Values[0].(string))
		})
	}
	return slices.ContainsFunc(e.Values, func(v any) bool { return compare(e.Op, e.Attribute, have, v) })
}

func compare(op Op, name string, have, v any) bool {
	if name == "since" {
		a, _ := time.Parse(time.RFC3339, have.(string))
		b, err := time.Parse(time.RFC3339, v.(string))
		if err != nil {
			b, _ = time.Parse(time.DateOnly, v.(string))
		}
		have, v = float64(a.UnixMicro()), float64(b.UnixMicro())
	}
	switch op {
	case Equal, In:
		return have == v
	case Unequal:
		return have != v
	case Contains:
		return strings.Contains(have.(string), v.(string))
	case Begins:
		return strings.HasPrefix(have.(string), v.(string))
	case Less:
		return have.(float64) < v.(float64)
	case AtMost:
		return have.(float64) <= v.(float64)
	case More:
		return have.(float64) > v.(float64)
	default:
		return have.(float64) >= v.(float64)
	}
}

func set(t testing.TB, table *Table, n int32, node map[string]any) {
	t.Helper()
	text := ""
	if len(node) > 0 {
		data, err := json.Marshal(node)
		if err != nil {
			t.Fatal(err)
		}
		text = string(data)
	}
	row, err := table.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	table.Set(n, row)
}

// Random filters select of random tables what the plainest evaluation does, whether they are asked first or again,
// after changes and removals, and with nodes that came without attributes after all others.
func TestSelectIsPlain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	some := 0
	for range 30 {
		table := NewTable(someTypes)
		nodes := make([]map[string]any, 150)
		change := func(times, below int) {
			for range times {
				n := r.IntN(below)
				nodes[n] = nil
				if r.IntN(4) == 0 {
					table.Clear(int32(n))
					continue
				}
				nodes[n] = randomNode(r)
				set(t, table, int32(n), nodes[n])
			}
		}
		change(300, 100)
		var asked []*Expr
		for range 100 {
			change(r.IntN(5), 130)
			e := random(r, 4)
			if len(asked) > 0 && r.IntN(2) == 0 {
				e = asked[max(0, len(asked)-1-r.IntN(5))]
			}
			asked = append(asked, e)
			var got Set
			var err error
			if short := parsed(t, e.String()); short.String() != e.String() {
				t.Fatalf("%s is read as %s", e, short)
			} else if got, err = table.Select(short, len(nodes)); err != nil {
				t.Fatalf("%s: %v", e, err)
			}
			for n, node := range nodes {
				if got.Has(int32(n)) != matches(e, node) {
					t.Fatalf("%s: node %d, %v: %t", e, n, node, got.Has(int32(n)))
				}
				if got.Has(int32(n)) {
					some++
				}
			}
		}
		names := []string{"price", "since", "new", "brand", "path"}
		for n, node := range nodes {
			want := map[string]any{}
			for _, name := range names {
				if v, ok := node[name]; ok {
					want[name] = v
				}
			}
			got, _ := json.Marshal(table.Values(int32(n), names))
			if want, _ := json.Marshal(want); string(got) != string(want) {
				t.Fatalf("node %d is %s, want %s", n, got, want)
			}
		}
	}
	if all := 30 * 100 * 150; some < all/10 || some > all*9/10 {
		t.Errorf("%d of %d match", some, all)
	}
}

// Questions beside each other get what each would get alone, whichever of them keeps a comparison first.
func TestSelectBesideOthers(t *testing.T) {
	table := NewTable(someTypes)
	nodes := make([]map[string]any, 200)
	r := rand.New(rand.NewPCG(2, 2))
	for n := range nodes {
		nodes[n] = randomNode(r)
		set(t, table, int32(n), nodes[n])
	}
	var asked []*Expr
	for range 50 {
		asked = append(asked, parsed(t, random(r, 3).String()))
	}
	var group sync.WaitGroup
	for seed := range uint64(4) {
		group.Go(func() {
			r := rand.New(rand.NewPCG(seed, 3))
			for range 200 {
				e := asked[r.IntN(len(asked))]
				got, err := table.Select(e, len(nodes))
				if err != nil {
					t.Errorf("%s: %v", e, err)
					return
				}
				for n, node := range nodes {
					if got.Has(int32(n)) != matches(e, node) {
						t.Errorf("%s: node %d, %v: %t", e, n, node, got.Has(int32(n)))
						return
					}
				}
			}
		})
	}
	group.Wait()
	for _, c := range table.columns {
		if len(c.kept) == 0 || len(c.kept) > mostKept {
			t.Errorf("%s keeps %d comparisons", c.Name, len(c.kept))
		}
	}
}

// A comparison with so many values that it takes much memory is answered, and not kept.
func TestLongComparisonsAreNotKept(t *testing.T) {
	table := NewTable(someTypes)
	set(t, table, 3, map[string]any{"brand": "a"})
	for _, length := range []int{longestKept, 10} {
		e := &Expr{Op: In, Attribute: "brand", Values: []any{"a", strings.Repeat("x", length)}}
		if got, err := table.Select(e, 64); err != nil || got.Len() != 1 || !got.Has(3) {
			t.Errorf("%v, %v", got, err)
		}
		if c := table.find("brand"); (len(c.kept) > 0) != (length < longestKept) {
			t.Errorf("with a value of %d bytes, %d comparisons are kept", length, len(c.kept))
		}
	}
}

// Values that no node has any more take no room.
func TestEntriesAreUsedAgain(t *testing.T) {
	table := NewTable(someTypes)
	for i := range 1000 {
		set(t, table, int32(i%3), map[string]any{"brand": fmt.Sprint("brand ", i), "path": []string{fmt.Sprint(i)}})
	}
	for _, name := range []string{"brand", "path"} {
		if c := table.find(name); len(c.entries) > 5 || len(c.code) != 3 {
			t.Errorf("%s has %d entries, %d of them in use", name, len(c.entries), len(c.code))
		}
	}
}

// What is asked of an attribute must exist, and fit its type.
func TestSelectNamesWhatExists(t *testing.T) {
	table := NewTable(someTypes)
	for short, want := range map[string]string{
		`stock>0 and prise<5`: `column 1: there is no attribute "stock"; there are brand (string), new (boolean), ` +
			`path (strings), price (number), since (time).`,
		`price>0 and prise<5`: `column 13: there is no attribute "prise"; there are brand (string), new (boolean), ` +
			`path (strings), price (number), since (time). Did you mean price?`,
		`price="5"`:        `price is of type number, which is compared with numbers, as in price<50`,
		`price^=5`:         `price is of type number, which is compared by =, !=`,
		`price in (5,"a")`: `compared with numbers`,
		`since>5`: `since is of type time, which is compared with times, as in ` +
			`since>"2026-03-01"`,
		`since>"March"`:                        `compared with times`,
		`new>true`:                             `new is of type boolean, which is compared by =, !=`,
		`new=1`:                                `compared with true or false`,
		`new="true"`:                           `compared with true or false`,
		`brand<"a"`:                            `brand is of type string, which is compared by =, !=, in, ^=`,
		`brand=5`:                              `compared with strings, in quotes`,
		`brand=true`:                           `compared with strings, in quotes`,
		`path="a"`:                             `path is of type strings, which is compared by contains`,
		`not (path exists or path contains 5)`: `column 21: path is of type strings, which is compared with strings`,
	} {
		if _, err := table.Select(parsed(t, short), 5); !errors.As(err, new(*Error)) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", short, err, want)
		}
	}
	if _, err := NewTable(nil).Select(parsed(t, "a=1"), 5); err == nil ||
		!strings.Contains(err.Error(), "ingest.nodes.attributes") {
		t.Errorf("without attributes: %v", err)
	}
	if err := table.Check([]string{"price", "colour"}); err == nil ||
		!strings.Contains(err.Error(), `there is no attribute "colour"; there are brand`) {
		t.Errorf("show: %v", err)
	}
	if row, err := table.Decode(`{"price":"5","new":5,"brand":null,"path":"a","since":"soon"}`); err != nil {
		t.Error(err)
	} else if table.Set(0, row); !reflect.DeepEqual(table.Values(0, []string{"price", "new", "brand", "path",
		"since"}), map[string]any{}) {
		t.Error("values of other types are kept")
	}
	if _, err := table.Decode(`{"price":`); err == nil {
		t.Error("damaged attributes are read")
	}
}

func BenchmarkSelect(b *testing.B) {
	const n = 1_000_000
	r := rand.New(rand.NewPCG(1, 1))
	table := NewTable(someTypes)
	for i := range int32(n) {
		table.Set(i, Row{{text: fmt.Sprint("brand ", r.IntN(5000))}, {text: "true"}, {}, {number: 100 * r.Float64()},
			{number: 0}})
	}
	for _, short := range []string{`price<50`, `price!=5`, `price in (1,2,3)`, `brand="brand 7"`, `brand contains "7"`,
		`price<50 and brand="brand 7"`} {
		b.Run(short, func(b *testing.B) {
			e := parsed(b, short)
			for b.Loop() {
				if _, err := table.Select(e, n); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			if _, err := table.Decode(`{"brand":"brand 7","path":["a","b"],"price":12.5}`); err != nil {
				b.Fatal(err)
			}
		}
	})
}
