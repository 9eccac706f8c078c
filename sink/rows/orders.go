package rows

import "giantstream/sink/parquetio"

// Order is what was bought together, or viewed, or put into one cart: the newest that is known of an order. A window
// has such a row of each order that has changed.
type Order struct {
	// Input is the number of the input that states the order. Equal ids of two inputs are two orders.
	Input   int32  `parquet:"input"`
	OrderID string `parquet:"order_id"`
	// Time is when the order was placed, in microseconds since the Unix epoch.
	Time int64 `parquet:"time,timestamp(microsecond)"`
	// Kind is what the input calls such an order.
	Kind string `parquet:"kind,optional"`
	// Customer stands for who placed it.
	Customer string `parquet:"customer,optional"`
	// Items are ascending, without duplicates. Whether an item is a node does not matter.
	Items []string `parquet:"items,list"`
	// Quantities are those of Items.
	Quantities []float32 `parquet:"quantities,list"`
	// EventTime is that of the newest statement about the order, in microseconds since the Unix epoch.
	EventTime int64 `parquet:"event_time,timestamp(microsecond)"`
	// Deleted marks an order that has no items any more.
	Deleted bool `parquet:"deleted"`
	// Times are those of Items, as of LineTime. They are nil where all are Time.
	Times []int64 `parquet:"times,list"`
}

// MemoryBytes estimates the row's size in memory.
func (r *Order) MemoryBytes() int64 {
	n := len(r.OrderID) + len(r.Kind) + len(r.Customer) + 4*len(r.Quantities) + 8*len(r.Times) + 128
	for _, item := range r.Items {
		n += len(item) + 16
	}
	return int64(n)
}

// The columns that nodes do not have.
const (
	ColInput      = "input"
	ColOrderID    = "order_id"
	ColTime       = "time"
	ColKind       = "kind"
	ColCustomer   = "customer"
	ColItems      = "items"
	ColQuantities = "quantities"
	ColTimes      = "times"
)

// Orders is the table of orders.
var Orders = &Table[Order]{
	Name:        "orders",
	Key:         func(r *Order) string { return string([]byte{byte(r.Input)}) + r.OrderID },
	EventTime:   func(r *Order) int64 { return r.EventTime },
	KeyColumns:  []string{ColInput, ColOrderID, ColEventTime},
	MemoryBytes: (*Order).MemoryBytes,
	format: parquetio.Format[Order]{Name: "orders/1",
		Size: func(r *Order) int {
			n := 32 + len(r.OrderID) + len(r.Kind) + len(r.Customer) + 4*len(r.Quantities) + 8*len(r.Times)
			for _, item := range r.Items {
				n += 4 + len(item)
			}
			return n
		},
		Generation: func(*Order) int64 { return 0 }},
	columns: []parquetio.Column[Order]{
		parquetio.Scalar(ColInput, parquetio.Int32(), func(r *Order, v int32) { r.Input = v }),
		parquetio.Scalar(ColOrderID, parquetio.String(), func(r *Order, v string) { r.OrderID = v }),
		parquetio.Scalar(ColTime, parquetio.Int64(), func(r *Order, v int64) { r.Time = v }),
		parquetio.Scalar(ColKind, parquetio.String(), func(r *Order, v string) { r.Kind = v }).Optional(),
		parquetio.Scalar(ColCustomer, parquetio.String(), func(r *Order, v string) { r.Customer = v }).Optional(),
		parquetio.List(ColItems, parquetio.String(), func(r *Order, v []string) { r.Items = v }),
		parquetio.List(ColQuantities, parquetio.Float(), func(r *Order, v []float32) { r.Quantities = v }),
		parquetio.Scalar(ColEventTime, parquetio.Int64(), func(r *Order, v int64) { r.EventTime = v }),
		parquetio.Scalar(ColDeleted, parquetio.Bool(), func(r *Order, v bool) { r.Deleted = v }),
		parquetio.List(ColTimes, parquetio.Int64(), func(r *Order, v []int64) { r.Times = v }).Optional(),
	},
}
