package preview

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"giantstream/ingest/decode"
)

// A time in another unit, or in a zone of its own, puts orders into the future.
func TestOrdersOfTheFuture(t *testing.T) {
	of := mapping
	of.Orders = map[string]decode.OrderMapping{"orders": {ID: []string{"id"}, Items: "items[*]", Time: "at", MaxItems: 9}}
	c, err := New(Options{Mapping: of, Limits: decode.Limits{RecordBytes: 1000}, Records: 100,
		Clock: func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }})
	if err != nil {
		t.Fatal(err)
	}
	read(t, c.Orders(), `{"id":"o1","items":["a","b"],"at":"2026-03-01T12:00:30Z"}
{"id":"o2","items":["a","b"],"at":"2027-02-01"}
{"id":"o3","items":["a","b"],"at":"2026-03-01T13:00:00Z"}
{"id":"o4","items":["a","b"],"at":"2026-03-01T13:00:00Z"}
{"id":"o2","items":["a","b"],"at":"2026-02-01"}
`)
	p := c.Result()
	want := `2 of 4 orders were placed in the future, the first of them, "o3", at 2026-03-01T13:00:00Z; check the unit`
	if warnings := strings.Join(p.Warnings(), "\n"); !strings.Contains(warnings, want) || p.Orders.Future != 2 {
		t.Errorf("%d in the future: %q, want %q", p.Orders.Future, warnings, want)
	}
}

// Events of a session are parts of an order, which records of whole orders replace.
func TestPartsTakenForOrders(t *testing.T) {
	for name, tt := range map[string]struct {
		mode  decode.Mode
		items func(i int) string // of the i-th record of an order
		warns bool
	}{
		"parts as orders": {decode.Replace, func(i int) string { return fmt.Sprintf(`"a%d"`, i) }, true},
		"parts":           {decode.Add, func(i int) string { return fmt.Sprintf(`"a%d"`, i) }, false},
		"growing carts":   {decode.Replace, func(i int) string { return `"a"` + strings.Repeat(`,"b"`, i) }, false},
		"the same again":  {decode.Replace, func(int) string { return `"a","b"` }, false},
		"corrected":       {decode.Replace, func(i int) string { return `"a","b","c"`[:11-4*i] }, false},
		"taken back":      {decode.Replace, func(i int) string { return `"a","b"`[:7-4*(i%2)*(1-i/2)] }, false},
	} {
		of := mapping
		of.Orders = map[string]decode.OrderMapping{"orders": {ID: []string{"id"}, Items: "items[*]", MaxItems: 9,
			Mode: tt.mode}}
		c := collector(t, of)
		var lines strings.Builder
		for order := range 30 {
			for i := range 3 {
				if name == "taken back" && order > 5 && i > 0 {
					break
				}
				fmt.Fprintf(&lines, `{"id":%d,"items":[%s]}`+"\n", order, tt.items(i))
			}
		}
		read(t, c.Orders(), lines.String())
		warnings := strings.Join(c.Result().Warnings(), "\n")
		if strings.Contains(warnings, "--order-mode add") != tt.warns {
			t.Errorf("%s: %q", name, warnings)
		}
	}
}
