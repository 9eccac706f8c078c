package generation

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"giantstream/sink"
	"giantstream/sink/parquetio"
)

const (
	// GoesWithName is the artifact that says what goes with what.
	GoesWithName = "goes-with.parquet"
	// goesWithFormat is the name and version of goes-with.parquet.
	goesWithFormat = "goes-with/1"
)

// ErrNoOrders: a generation knows nothing of orders, so that it cannot say what goes with an item.
var ErrNoOrders = errors.New("the generation does not know what goes with what, as it was built without orders: " +
	"add them (ingest.baskets, --orders), with links.from_orders.max_partners above 0, and build a generation")

// Complement is a row of goes-with.parquet: Item is suggested to a basket that has Partner.
type Complement struct {
	Item    string `parquet:"item"`
	Partner string `parquet:"partner,dict"`
	// Score is what the partner adds to the prediction of the item, above 0.
	Score float32 `parquet:"score"`
	// Support is how many orders have both.
	Support int32 `parquet:"support"`
}

// ComplementStats describes goes-with.parquet.
type ComplementStats struct {
	// Items have a row, Rows is how many there are.
	Items int   `json:"items"`
	Rows  int64 `json:"rows"`
}

// WriteComplements stores what goes with what: ascending by item, the highest score of an item first.
func WriteComplements(ctx context.Context, store sink.Store, key string, g int64,
	all iter.Seq2[Complement, error]) (parquetio.Info, error) {
	format := parquetio.Format[Complement]{
		Name:       goesWithFormat,
		Size:       func(c *Complement) int { return len(c.Item) + len(c.Partner) + 8 },
		Generation: func(*Complement) int64 { return g },
	}
	return parquetio.Put(ctx, store, key, format, all)
}

// Complements yields the rows of a complete generation's goes-with.parquet, in order, with bounded memory: ErrNoOrders
// if it has none, ErrDamaged if they are not what its build left.
func Complements(ctx context.Context, store sink.Store, doc *Doc) iter.Seq2[Complement, error] {
	return func(yield func(Complement, error) bool) {
		if _, ok := doc.Files[GoesWithName]; !ok {
			yield(Complement{}, fmt.Errorf("generation %d: %w", doc.Generation, ErrNoOrders))
			return
		}
		open := func(o sink.Object) (string, []parquetio.Column[Complement], error) {
			return goesWithFormat, []parquetio.Column[Complement]{
				parquetio.Scalar("item", parquetio.String(), func(c *Complement, v string) { c.Item = v }),
				parquetio.Scalar("partner", parquetio.String(), func(c *Complement, v string) { c.Partner = v }),
				parquetio.Scalar("score", parquetio.Float(), func(c *Complement, v float32) { c.Score = v }),
				parquetio.Scalar("support", parquetio.Int32(), func(c *Complement, v int32) { c.Support = v }),
			}, nil
		}
		for c, err := range parquetio.Get(ctx, store, doc.ref(GoesWithName), open) {
			if !yield(c, damaged(doc.Generation, err)) || err != nil {
				return
			}
		}
	}
}
