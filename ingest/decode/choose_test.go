package decode_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"giantstream/ingest/decode"
)

func TestPathsChooseElements(t *testing.T) {
	const product = `{"sku":"P1","values":{"name":[{"locale":"en_US","data":"Boot"},{"locale":"de_DE","data":"Stiefel"}],
		"tags":[{"data":["warm","red"],"locale":"de_DE","scope":{"code":"web"}},{"data":["cold"],"locale":null}]},
		"attributes":[{"code":"weight","value":1.50},{"value":"leather","code":"mate.rial"},
			{"code":"colour","value":"red","code":"size"},{"code":7,"value":"seven"},{"code":"a]\"","value":"odd"}, "loose"],
		"relations":[{"type":"up","skus":["P2","P3"]},{"type":"cross","skus":["P4"]},{"type":"up","skus":["P5"]}]}`
	for _, tt := range []struct{ path, want string }{
		{"values.name[locale=de_DE].data", "Stiefel"},
		{`values.name[locale="en_US"].data`, "Boot"},
		{"values.name[locale=fr_FR].data", ""},
		{"values.tags[scope.code=web].data[*]", "warm\nred"},
		{"values.tags[scope.code=web].data", "warm\nred"}, // a list counts as its elements
		{"values.tags[locale=de_DE].data[1]", "red"},
		{"attributes[code=weight].value", "1.50"},
		{"attributes[code=mate.rial].value", "leather"},
		{"attributes[code=size].value", "red"}, // of a repeated field the last one counts
		{"attributes[code=colour].value", ""},
		{"attributes[code=7].value", "seven"},
		{`attributes[code="a]\""].value`, "odd"},
		{"relations[type=up].skus[*]", "P2\nP3\nP5"},
	} {
		d, err := decode.Nodes(decode.NodeMapping{ID: "sku", Text: []string{tt.path}}, attributeLimits, 1)
		if err != nil {
			t.Errorf("%s: %v", tt.path, err)
			continue
		}
		got, fault := d.Decode(decode.Record{Value: []byte(product)}, nil)
		if fault != nil {
			t.Errorf("%s: %v", tt.path, fault)
		}
		text := ""
		if len(got) > 0 {
			text = got[0].Text
		}
		if text != tt.want {
			t.Errorf("%s leads to %q, want %q", tt.path, text, tt.want)
		}
	}
	for _, path := range []string{"a[b=]", "a[=b]", `a[b="c]`, "a[b[*]=c]", "a[b=c", "a[b c]", "a[b=c]d"} {
		if _, err := decode.ParsePath(path); err == nil {
			t.Errorf("%s is taken for a path", path)
		}
	}
}

// What a path chooses is what the plainest reading of the document chooses, in the same order.
func TestChosenElementsAreThoseWithTheValue(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // draws documents
		pick := func(s ...string) string { return s[r.IntN(len(s))] }
		var outer []any
		for range r.IntN(4) {
			element := map[string]any{}
			if r.IntN(4) > 0 {
				element["k"] = pick("x", "y")
			}
			var inner []any
			for range r.IntN(4) {
				inner = append(inner, map[string]any{"k": pick("x", "y"), "at": map[string]string{"k": pick("x", "y")},
					"v": fmt.Sprint(seed, "-", r.IntN(1000))})
			}
			element["in"] = inner
			outer = append(outer, element)
		}
		doc, err := json.Marshal(map[string]any{"id": "a", "out": outer})
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, o := range outer {
			o := o.(map[string]any)
			for _, i := range o["in"].([]any) {
				i := i.(map[string]any)
				if o["k"] == "x" && i["k"] == "y" {
					want = append(want, i["v"].(string))
				}
			}
		}
		d, err := decode.Edges(decode.EdgeMapping{Src: "id", Dst: "out[k=x].in[k=y].v"}, attributeLimits, 1)
		if seed%2 == 0 {
			want = want[:0]
			for _, o := range outer {
				for _, i := range o.(map[string]any)["in"].([]any) {
					if i := i.(map[string]any); i["at"].(map[string]string)["k"] == "x" {
						want = append(want, i["v"].(string))
					}
				}
			}
			d, err = decode.Edges(decode.EdgeMapping{Src: "id", Dst: "out[*].in[at.k=x].v"}, attributeLimits, 1)
		}
		if err != nil {
			t.Fatal(err)
		}
		mutations, fault := d.Decode(decode.Record{Value: doc}, nil)
		if fault != nil {
			t.Fatalf("%s: %v", doc, fault)
		}
		got := []string{}
		for _, m := range mutations {
			got = append(got, m.Other)
		}
		if slices.Sort(want); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Compact(want)) {
			t.Errorf("%s: %q, want %q", doc, got, want)
		}
	}
}

func TestChoiceAmongTooManyElements(t *testing.T) {
	limits := attributeLimits
	limits.EdgesPerRecord = 3
	d, err := decode.Nodes(decode.NodeMapping{ID: "id", Text: []string{"l[k=x].v"}}, limits, 1)
	if err != nil {
		t.Fatal(err)
	}
	for n, refused := range map[int]bool{3: false, 4: true} {
		doc := `{"id":"a","l":[` + strings.Repeat(`{"k":"y","v":"no"},`, n-1) + `{"k":"x","v":"yes"}]}`
		got, fault := d.Decode(decode.Record{Value: []byte(doc)}, nil)
		if (fault != nil) != refused || !refused && got[0].Text != "yes" {
			t.Errorf("%d elements: %v %+v", n, fault, got)
		}
	}
}
