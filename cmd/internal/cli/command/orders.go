package command

import (
	"cmp"
	"strings"

	"github.com/spf13/pflag"

	"giantstream/config"
	"giantstream/ingest/decode"
)

// ordersTopic is the topic of orders where only flags name files of them.
const ordersTopic = "orders"

// orderFlags map the fields of orders.
type orderFlags struct {
	id, item, quantity, time, kind, customer, mode string
}

func (o *orderFlags) register(f *InputFlags, fl *pflag.FlagSet) {
	fl.StringArrayVar(&f.Orders, "orders", nil,
		"files with orders, what was bought or viewed together: `GLOB`, as --nodes (repeatable)")
	fl.StringVar(&o.id, "order-id", "", "field with the order's id (default id)")
	fl.StringVar(&o.item, "order-item", "",
		"field with its item, or items: 'line_items[*].sku' (default items[*].id)")
	fl.StringVar(&o.quantity, "order-quantity", "", "field with the quantity of each item (default 1)")
	fl.StringVar(&o.time, "order-time", "", "field with the time of the order (default: the file's modification time)")
	fl.StringVar(&o.kind, "order-kind", "", `field with the kind of the order, or a constant: '"view"'`)
	fl.StringVar(&o.customer, "order-customer", "", "field with who placed it; only a hash of it is kept")
	fl.StringVar(&o.mode, "order-mode", "",
		"replace: a record has a whole order; add: a line of it (default add for CSV files with an item a line)")
}

// applyOrders sets the fields of the configuration that flags of orders were given for.
func (f *InputFlags) applyOrders(b *config.BasketFields) {
	o := &f.order
	if len(f.Orders) > 0 {
		b.Topic = cmp.Or(b.Topic, ordersTopic)
	}
	for _, field := range []struct {
		in   *string
		flag string
	}{{&b.ID, o.id}, {&b.Items, o.item}, {&b.Quantity, o.quantity}, {&b.Time, o.time}, {&b.Kind, o.kind},
		{&b.Customer, o.customer}} {
		*field.in = cmp.Or(field.flag, *field.in)
	}
	if o.mode == "" && f.orderLines(b.Items) {
		o.mode = string(decode.Add)
	}
	b.Mode = cmp.Or(o.mode, b.Mode)
}

// orderLines reports whether the files of orders are tables with an item a line.
func (f *InputFlags) orderLines(items string) bool {
	if strings.Contains(items, "[") || f.read.ListSeparator != "" {
		return false
	}
	for _, pattern := range f.Orders {
		name := strings.TrimSuffix(strings.TrimSuffix(pattern, ".gz"), ".zst")
		if strings.HasSuffix(name, ".csv") || strings.HasSuffix(name, ".tsv") {
			return true
		}
	}
	return false
}
