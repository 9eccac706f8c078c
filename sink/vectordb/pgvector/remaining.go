package pgvector

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"giantstream/sink/vectordb"
)

// undefinedTable is the SQLSTATE of a table that does not exist.
const undefinedTable = "42P01"

// Remaining implements vectordb.Index.
func (x *Index) Remaining(ctx context.Context, nodes []string) (map[string]int, error) {
	// The server would refuse a request with an id that no table can have.
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(id string) bool { return x.Check(id) != nil })
	var c vectordb.Catalog
	if err := x.find(ctx, &c, fmt.Sprintf("SELECT catalog FROM %s_sink", x.opts.Name)); err != nil {
		return nil, err
	}
	return c.Remaining(x.opts.Name, nodes, func(table string, nodes []string) (n int, err error) {
		err = x.find(ctx, &n, fmt.Sprintf("SELECT count(*) FROM %s WHERE node_id = ANY ($1)", table), nodes)
		return n, err
	})
}

// find reads a value, if there are such a table and such a row.
func (x *Index) find(ctx context.Context, to any, query string, args ...any) error {
	err := x.pool.QueryRow(ctx, query, args...).Scan(to)
	if p, is := errors.AsType[*pgconn.PgError](err); is && p.Code == undefinedTable || errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return classify(err)
}
