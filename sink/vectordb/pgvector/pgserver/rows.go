package pgserver

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"giantstream/sink/vectordb/vectordbtest"
)

// Rows reads what readers of a view see, whose table has the attributes of vectordbtest; nil if there is no such view.
func Rows(t testing.TB, c *pgx.Conn, view string) map[string]vectordbtest.Seen {
	t.Helper()
	out := map[string]vectordbtest.Seen{}
	var id string
	var s vectordbtest.Seen
	var price *float64
	var brand *string
	var tags *[]string
	var sold *bool
	var since *time.Time
	// Without a prepared statement: the view changes under it.
	got, err := c.Query(t.Context(), `SELECT node_id, coalesce(embedding::text, ''), generation, seq, price, "Brand",
		tags, sold, since FROM `+view, pgx.QueryExecModeExec)
	if err == nil {
		_, err = pgx.ForEachRow(got, []any{&id, &s.Vector, &s.Generation, &s.Seq, &price, &brand, &tags, &sold, &since},
			func() error {
				s.Attributes = vectordbtest.Show([]any{value(price), value(brand), value(tags), value(sold),
					value(since)})
				out[id] = s
				return nil
			})
	}
	if err != nil && strings.Contains(err.Error(), "does not exist") {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// value returns what p points to, nil for null.
func value[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}
