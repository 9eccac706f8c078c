package decode_test

import (
	"fmt"
	"strings"
	"testing"

	"giantstream/ingest/decode"
	"giantstream/ingest/internal/kafkatest"
)

// columns are those of a table of PostgreSQL, as Debezium 3.5 and Kafka Connect 4.2 write their schemas.
const columns = `[{"type":"string","optional":false,"field":"sku"},
	{"type":"string","optional":true,"field":"description"},
	{"type":"bytes","optional":false,"name":"org.apache.kafka.connect.data.Decimal","version":1,
		"parameters":{"scale":"2","connect.decimal.precision":"10"},"field":"price"},
	{"type":"struct","fields":[{"type":"int32","optional":false,"field":"scale"},
		{"type":"bytes","optional":false,"field":"value"}],"optional":true,
		"name":"io.debezium.data.VariableScaleDecimal","version":1,"field":"weight"},
	{"type":"int64","optional":true,"name":"io.debezium.time.MicroTimestamp","version":1,"field":"updated"},
	{"type":"int32","optional":true,"name":"io.debezium.time.Date","version":1,"field":"day"},
	{"type":"int64","optional":true,"name":"io.debezium.time.MicroTime","version":1,"field":"opens"},
	{"type":"array","items":{"type":"bytes","optional":true,"name":"org.apache.kafka.connect.data.Decimal","version":1,
		"parameters":{"scale":"2","connect.decimal.precision":"6"}},"optional":true,"field":"prices"}]`

// besideSchema is an event as JsonConverter writes it with schemas.enable, of a table with these columns.
func besideSchema(columns, event string) string {
	return fmt.Sprintf(`{"schema":{"type":"struct","fields":[{"type":"struct","fields":%[1]s,"optional":true,`+
		`"name":"shop.public.products.Value","field":"before"},{"type":"struct","fields":%[1]s,"optional":true,`+
		`"name":"shop.public.products.Value","field":"after"},{"type":"string","optional":false,"field":"op"}],`+
		`"optional":false,"name":"shop.public.products.Envelope","version":2},"payload":%[2]s}`, columns, event)
}

func mapped(t *testing.T, fields ...string) (all []decode.Attribute) {
	t.Helper()
	for _, f := range fields {
		a, err := decode.ParseAttribute(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}

// TestTypesOfConnect: the schema beside a row says what its decimals and times are.
func TestTypesOfConnect(t *testing.T) {
	m := decode.NodeMapping{Debezium: true, ID: "sku", Text: []string{"description", "weight"}, Attributes: mapped(t,
		"price:number", "weight:number", "updated:time", "day:time", "opens", "prices:strings", "first:number=prices[0]")}
	row := func(price string) string {
		return `{"sku":"P1","description":"light tent","price":` + price + `,"weight":{"scale":2,"value":"fQ=="},` +
			`"updated":1234,"day":20513,"opens":36001500000,"prices":["AJY=",null,"AOE="]}`
	}
	want := func(price string) string {
		return `{"day":"2026-03-01T00:00:00Z","first":1.5,"opens":"10:00:01.5","price":` + price +
			`,"prices":["1.50","2.25"],"updated":"1970-01-01T00:00:00.001234Z","weight":1.25}`
	}
	d := nodes(t, m)
	for _, c := range []struct{ name, columns, price, want string }{
		{"a decimal", columns, `"ThY="`, "199.9"},
		{"a negative decimal", columns, `"/w=="`, "-0.01"},
		{"decimal.format=NUMERIC", columns, "199.90", "199.9"},
		{"another scale from here on", strings.Replace(columns, `"scale":"2","connect.decimal.precision":"10"`,
			`"scale":"3"`, 1), `"ThY="`, "19.99"},
	} {
		for op, event := range map[string]string{
			"r": event("r", "null", row(c.price)), "u": event("u", row(`"AA=="`), row(c.price))} {
			got, fault := d.Decode(record("", besideSchema(c.columns, event)), nil)
			if fault != nil || len(got) != 1 || got[0].Text != "light tent\n1.25" || got[0].Attributes != want(c.want) {
				t.Errorf("%s (%s): %+v, %v\nwant %s", c.name, op, got, fault, want(c.want))
			}
		}
	}
	// As time.precision.mode=isostring has them.
	const rest = `"description":null,"weight":null,"opens":null,"prices":null}`
	iso, fault := d.Decode(record("", event("c", "null", `{"sku":"P1","day":"2026-03-01Z","price":null,`+
		`"updated":"1970-01-01T00:00:00.001234Z",`+rest)), nil)
	if fault != nil || len(iso) != 1 || iso[0].Attributes !=
		`{"day":"2026-03-01T00:00:00Z","updated":"1970-01-01T00:00:00.001234Z"}` {
		t.Errorf("%+v, %v", iso, fault)
	}
	// Without a schema, nothing is taken for what it may not be.
	_, fault = d.Decode(record("", event("c", "null", `{"sku":"P1","price":"ThY=","updated":null,"day":null,`+rest)),
		nil)
	if fault == nil || fault.Code != decode.BadType || !strings.Contains(fault.Message, "decimal.handling.mode=string") {
		t.Errorf("a decimal without its schema: %v", fault)
	}
	// The same number by the schema and by itself.
	id, _, ok := nodes(t, decode.NodeMapping{Debezium: true, ID: "price"}).Route([]byte(besideSchema(
		strings.Replace(columns, `"scale":"2"`, `"scale":"0"`, 1), event("c", "null", row(`"ThY="`)))))
	if id != "19990" || !ok {
		t.Errorf("a decimal as id: %q", id)
	}
}

// FuzzTypesOfConnect: no schema makes more of a row than a fault.
func FuzzTypesOfConnect(f *testing.F) {
	f.Add(besideSchema(columns, event("u", "null", `{"sku":"P1","price":"ThY=","day":1,"prices":["AA=="]}`)))
	f.Add(`{"schema":{"fields":[{"field":"after","fields":[{"field":"price","name":"x","items":{}}]}]},"payload":{}}`)
	f.Fuzz(func(t *testing.T, value string) {
		d := nodes(t, decode.NodeMapping{Debezium: true, ID: "sku", Text: []string{"description"},
			Attributes: mapped(t, "price:number", "weight", "day:time", "prices:strings")})
		got, fault := d.Decode(record("P1", value), nil)
		if fault != nil && len(got) > 0 && fault.Code != decode.IDChanged {
			t.Errorf("%+v and %v", got, fault)
		}
	})
}

// TestUnavailableValues: what stands for a large value that an update did not change is no value, also where
// ExtractNewRecordState has flattened the rows.
func TestUnavailableValues(t *testing.T) {
	const gone = "__debezium_unavailable_value"
	m := decode.NodeMapping{ID: "sku", Text: []string{"name", "description"}, Deleted: "status in [discontinued]",
		Attributes: mapped(t, "notes", "tags:strings")}
	const rest = `,"description":null,"notes":null,"tags":[]}`
	for name, c := range map[string]struct {
		row     string
		applied bool
	}{
		"a text":             {`{"sku":"P1","name":"pen","description":"` + gone + `","status":"active"}`, false},
		"an attribute":       {`{"sku":"P1","name":"pen","notes":"` + gone + `"}`, false},
		"a list":             {`{"sku":"P1","name":"pen","tags":["` + gone + `"]}`, false},
		"the condition":      {`{"sku":"P1","name":"pen","status":"` + gone + `"}`, false},
		"a deletion":         {`{"sku":"P1","description":"` + gone + `","status":"discontinued"}`, true},
		"not mapped":         {`{"sku":"P1","name":"pen","other":"` + gone + `"` + rest, true},
		"a text that has it": {`{"sku":"P1","name":"what ` + gone + ` means"` + rest, true},
	} {
		for _, debezium := range []bool{false, true} {
			value := c.row
			if m.Debezium = debezium; debezium {
				value = event("u", "null", c.row)
			}
			got, fault := nodes(t, m).Decode(record("P1", value), nil)
			if c.applied != (fault == nil && len(got) == 1) ||
				!c.applied && (fault.Code != decode.BadChange || !strings.Contains(fault.Message, "REPLICA IDENTITY FULL")) {
				t.Errorf("%s (change event: %v): %+v, %v", name, debezium, got, fault)
			}
		}
	}
	prices, err := decode.Attributes(decode.AttributesMapping{ID: "sku", Attributes: mapped(t, "notes")}, 9,
		kafkatest.Limits(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if got, fault := prices.Decode(record("P1", `{"notes":"`+gone+`"}`), nil); fault == nil || len(got) > 0 {
		t.Errorf("a topic of attributes: %+v, %v", got, fault)
	}
}
