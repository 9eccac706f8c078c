package decode_test

import (
	"strings"
	"testing"
	"time"

	"giantstream/ingest/client"
	"giantstream/ingest/decode"
	"giantstream/stream/mutation"
)

func attribute(t *testing.T, s string) decode.Attribute {
	t.Helper()
	a, err := decode.ParseAttribute(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var attributeLimits = decode.Limits{RecordBytes: 1 << 20, TextBytes: 1 << 10, EdgesPerRecord: 10}

// What records say in any notation becomes one canonical object.
func TestAttributesAreCanonical(t *testing.T) {
	var all []decode.Attribute
	for _, s := range []string{"price:number=offer.price", "stock:number", "new:boolean", "brand", "since:time",
		"path:strings=crumbs[*].name"} {
		all = append(all, attribute(t, s))
	}
	d, err := decode.Attributes(decode.AttributesMapping{ID: "sku", Attributes: all}, 3, attributeLimits, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ value, want string }{
		{`{"sku":"a","offer":{"price":19.90},"stock":3,"new":true,"brand":"Bic","since":"2026-01-02"}`,
			`{"brand":"Bic","new":true,"price":19.9,"since":"2026-01-02T00:00:00Z","stock":3}`},
		{`{"sku":"a","offer":{"price":"1.99e1"},"stock":"3.0","new":"TRUE","brand":"Bic","since":1767312000}`,
			`{"brand":"Bic","new":true,"price":19.9,"since":"2026-01-02T00:00:00Z","stock":3}`},
		{`{"sku":"a","brand":"Lamy","since":"2026-01-02T03:04:05\u005a"}`,
			`{"brand":"Lamy","since":"2026-01-02T03:04:05Z"}`},
		{`{"sku":"a","brand":"","stock":null}`, `{}`},
		{`{"sku":"a","new":1}`, `{"new":true}`},
		{`{"sku":"a","new":"0"}`, `{"new":false}`},
		{`{"sku":"a","stock":-0.0,"brand":"a \"b\" <c> \\ \u0001 é"}`,
			`{"brand":"a \"b\" <c> \\ \u0001 é","stock":0}`},
		{`{"sku":"a","crumbs":[{"name":"home"},{"name":"tents"}]}`, `{"path":["home","tents"]}`},
		{`{"sku":"a","crumbs":[]}`, `{}`},
		{`{"sku":"a","crumbs":""}`, `{}`},
		{`{"sku":"a","crumbs":[{"name":""},{"name":null}]}`, `{}`},
		{`{"sku":"a","crumbs":[{"name":""},{"name":"tents"},{"name":""}]}`, `{"path":["tents"]}`},
		{`{"sku":"a","stock":1e21}`, `{"stock":1e+21}`},
	} {
		got, fault := d.Decode(decode.Record{Value: []byte(tt.value), Time: time.Unix(7, 0), Offset: 5}, nil)
		if fault != nil || len(got) != 1 || got[0].Attributes != tt.want {
			t.Errorf("%s:\n got %+v, %v\nwant %s", tt.value, got, fault, tt.want)
			continue
		}
		want := mutation.Version{EventTime: 7e6, Rank: 3, Offset: 5}
		if m := got[0]; m.Op != mutation.SetAttributes || m.ID != "a" || m.Version != want {
			t.Errorf("%+v", m)
		}
	}
	gone, fault := d.Decode(decode.Record{Key: []byte("a"), Time: time.Unix(7, 0)}, nil)
	if fault != nil || len(gone) != 1 || gone[0].Attributes != mutation.NoAttributes {
		t.Errorf("a null value: %+v, %v", gone, fault)
	}
	for value, code := range map[string]decode.Code{
		`{"sku":"a","stock":"many"}`: decode.BadType, `{"sku":"a","stock":"NaN"}`: decode.BadType,
		`{"sku":"a","new":2}`: decode.BadType, `{"sku":"a","since":"soon"}`: decode.BadType,
		`{"sku":"a","brand":{}}`: decode.BadType, `{"stock":1}`: decode.MissingID,
		`{"sku":"a","brand":"` + strings.Repeat("x", 4096) + `"}`: decode.AttributesTooLarge,
	} {
		if got, fault := d.Decode(decode.Record{Value: []byte(value)}, nil); fault == nil || fault.Code != code {
			t.Errorf("%.60s: got %v, %v, want %s", value, got, fault, code)
		}
	}
}

func TestNodeRecordsHaveAttributes(t *testing.T) {
	d, err := decode.Nodes(decode.NodeMapping{ID: "id", Text: []string{"title", "body"},
		Attributes: []decode.Attribute{attribute(t, "price:number")}}, attributeLimits, 2)
	if err != nil {
		t.Fatal(err)
	}
	r := decode.Record{Value: []byte(`{"id":"a","title":"x","body":"y","price":2}`),
		Partition: client.Partition([]byte("a"), 2)}
	got, fault := d.Decode(r, nil)
	if fault != nil || len(got) != 1 || got[0].Attributes != `{"price":2}` || got[0].Text != "x\ny" {
		t.Errorf("%+v, %v", got, fault)
	}
}

func TestAttributesThatCannotBeMapped(t *testing.T) {
	for s, says := range map[string]string{"": "a name is", "a b": "a name is", "price:money": "no type",
		"price:number=": "not a field name", "price=a[": "cannot read",
		"pricing.amount:number": "such as amount:number=pricing.amount",
		"price=net.price:number": `price:number=net.price; a field of the name "net.price:number" is written ` +
			`["net.price:number"]`,
		"tags[*]:strings": "tags:strings=tags[*]"} {
		if _, err := decode.ParseAttribute(s); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", s, err)
		}
	}
	twice := []decode.Attribute{attribute(t, "a"), attribute(t, "a=b")}
	if _, err := decode.Nodes(decode.NodeMapping{ID: "id", Attributes: twice}, attributeLimits, 1); err == nil {
		t.Error("an attribute was mapped twice")
	}
}

func attributesOf(d *decode.Decoder, value string) (string, *decode.Fault) {
	got, fault := d.Decode(decode.Record{Value: []byte(value)}, nil)
	if fault != nil || len(got) != 1 {
		return "", fault
	}
	return got[0].Attributes, nil
}

// A decimal comma is read where the mapping says so, and nowhere else: 1,234 is a thousand to some.
func TestDecimalComma(t *testing.T) {
	for value, want := range map[string]string{
		`"12,50"`: "12.5", `"1.234,50"`: "1234.5", `"1 234 567,8"`: "1234567.8", `"-3"`: "-3",
		`"1.234"`: "1234", `12.5`: "12.5",
		`"12.50"`: "it must be a number like 1.234,50", `"1,2,3"`: "must be", `"1.23,4"`: "must be", `"12,50 €"`: "must be",
	} {
		d, err := decode.Nodes(decode.NodeMapping{ID: "id", Text: []string{"t"},
			Attributes: []decode.Attribute{attribute(t, "price:decimal-comma")}}, attributeLimits, 1)
		if err != nil {
			t.Fatal(err)
		}
		got, fault := attributesOf(d, `{"id":1,"t":"x","price":`+value+`}`)
		if fault != nil {
			got = fault.Message
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
	d, err := decode.Nodes(decode.NodeMapping{ID: "id", Text: []string{"t"},
		Attributes: []decode.Attribute{attribute(t, "price:number")}}, attributeLimits, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, fault := attributesOf(d, `{"id":1,"t":"x","price":"12,50"}`); fault == nil ||
		!strings.Contains(fault.Message, "the type decimal-comma reads it") {
		t.Errorf("a number with a comma: %v", fault)
	}
	d, err = decode.Nodes(decode.NodeMapping{ID: "id", Text: []string{"t"},
		Attributes: []decode.Attribute{attribute(t, "active:boolean")}}, attributeLimits, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, fault := attributesOf(d, `{"id":1,"t":"x","active":"ja"}`); fault == nil ||
		!strings.Contains(fault.Message, `active is "ja"; it must be true or false, 1 or 0; the type string`) {
		t.Errorf("a word where a boolean is due: %v", fault)
	}
}

// Times as shops and spreadsheets write them. What can be read in two ways is refused.
func TestTimesOfShops(t *testing.T) {
	d, err := decode.Nodes(decode.NodeMapping{ID: "id", Text: []string{"t"},
		Attributes: []decode.Attribute{attribute(t, "at:time")}}, attributeLimits, 1)
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		"2026-09-06 10:02": "2026-09-06T10:02:00Z", "2026-09-06T10:02+02:00": "2026-09-06T08:02:00Z",
		"06.09.2026": "2026-09-06T00:00:00Z", "06.09.2026 10:02": "2026-09-06T10:02:00Z",
		"06.09.2026 10:02:03 +0200": "2026-09-06T08:02:03Z", "06.09.2026T10:02:03": "2026-09-06T10:02:03Z",
		"09/06/2026": "", "06.13.2026": "", "6.9.2026": "", "06.09.26": "", "2026.09.06": "", "06.09.2026 1:02 PM": "",
		"06.09.€026": "", "06.09.2026 10": "",
	} {
		got, fault := attributesOf(d, `{"id":1,"t":"x","at":"`+value+`"}`)
		if want != "" {
			want = `{"at":"` + want + `"}`
		}
		if got != want || (want == "") != (fault != nil) {
			t.Errorf("%s: %s, %v; want %s", value, got, fault, want)
		}
	}
}
