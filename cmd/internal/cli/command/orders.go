package command

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"

	"giantstream/config"
)

// ordersTopic is the topic of orders where only flags name files of them.
const ordersTopic = "orders"

// orderFlags map the fields of orders.
type orderFlags struct {
	id []string

	item, quantity, time, kind, customer, eventTime, mode, deleted string

	keep time.Duration
}

// RegisterOrders adds the flags of a command that takes files of orders.
func (f *InputFlags) RegisterOrders(c *cobra.Command) {
	fl, o := c.Flags(), &f.order
	fl.StringArrayVar(&f.Orders, "orders", nil,
		"files with orders, what was bought or viewed together: `GLOB`, as --nodes (repeatable)")
	fl.StringArrayVar(&o.id, "order-id", nil, "field with the order's id (default id); repeat it for several fields "+
		"that tell orders apart together, such as customer and day")
	fl.StringVar(&o.item, "order-item", "",
		"field with an item of it, or of all its lines: 'line_items[*].sku' (default items[*].id)")
	fl.StringVar(&o.quantity, "order-quantity", "", "field with the quantity of each item (default 1)")
	fl.StringVar(&o.time, "order-time", "", "field with the time of the order (default: the file's modification time)")
	fl.StringVar(&o.eventTime, "order-event-time", "", "as --event-time, for orders alone")
	fl.StringVar(&o.kind, "order-kind", "", `field with the kind of the order, or a constant: '"view"'`)
	fl.StringVar(&o.deleted, "order-deleted", "",
		"which records delete their order, as --deleted: 'status in [cancelled, failed]' (default deleted)")
	fl.StringVar(&o.mode, "order-mode", "",
		"replace: a record has all lines of its order; add: it adds lines (default: by the path of the items)")
	fl.StringVar(&o.customer, "order-customer", "", "field with who placed it; only a hash of it is kept")
}

// RegisterOrderKeep adds the flag of a command that commits orders.
func (f *InputFlags) RegisterOrderKeep(c *cobra.Command) {
	c.Flags().DurationVar(&f.order.keep, "order-keep", 0,
		"how long an order counts, such as 8760h, up to the day of the newest one (default for ever)")
}

// applyOrders sets the fields of the configuration that flags of orders were given for.
func (f *InputFlags) applyOrders(b *config.BasketFields) {
	o := &f.order
	if len(f.Orders) > 0 {
		b.Topic = cmp.Or(b.Topic, ordersTopic)
		b.EventTime = cmp.Or(o.eventTime, f.eventTime, b.EventTime)
	}
	b.Keep = cmp.Or(o.keep, b.Keep)
	if len(o.id) > 0 {
		b.ID = o.id
	}
	for _, field := range []struct {
		in   *string
		flag string
	}{{&b.Items, o.item}, {&b.Quantity, o.quantity}, {&b.Time, o.time}, {&b.Kind, o.kind},
		{&b.Customer, o.customer}, {&b.Mode, o.mode}, {&b.Deleted, o.deleted}} {
		*field.in = cmp.Or(field.flag, *field.in)
	}
}
