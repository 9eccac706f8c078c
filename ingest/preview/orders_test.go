package preview

import (
	"fmt"
	"strings"
	"testing"

	"giantstream/ingest/decode"
)

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
