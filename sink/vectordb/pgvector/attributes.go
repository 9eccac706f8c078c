package pgvector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"giantstream/sink/vectordb"
)

// Attributes implements vectordb.Attributed.
func (x *Index) Attributes() []vectordb.Attribute { return x.opts.Attributes }

// typeOf is what PostgreSQL calls the type of an attribute, as format_type writes it.
func typeOf(t vectordb.AttributeType) string {
	switch t {
	case vectordb.Number:
		return "double precision"
	case vectordb.Boolean:
		return "boolean"
	case vectordb.Strings:
		return "text[]"
	case vectordb.Time:
		return "timestamp with time zone"
	}
	return "text"
}

// quoted returns an attribute's name as PostgreSQL takes it: it may have capitals and dashes, and no quotes.
func quoted(name string) string { return `"` + name + `"` }

// column of a table or a view.
type column struct{ Name, Type string }

// columnsOf returns the columns of a table or a view, none if there is no such.
func columnsOf(ctx context.Context, tx pgx.Tx, relation string) ([]column, error) {
	got, err := tx.Query(ctx, `SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
		WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum`, relation)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(got, pgx.RowToStructByPos[column])
}

// find returns the place of a column.
func find(all []column, name string) int {
	return slices.IndexFunc(all, func(c column) bool { return c.Name == name })
}

// shown are the columns that the view has of every sink, and its tables too, in this order.
var shown = []string{"node_id", "embedding", "generation", "space", "status", "event_time", "shard", "seq"}

// checkColumns refuses a table or a view that something else has made: one without the columns that a sink gives it.
func checkColumns(ctx context.Context, tx pgx.Tx, relation string, columns []string) error {
	there, err := columnsOf(ctx, tx, relation)
	if err != nil {
		return err
	}
	for i, name := range columns {
		if i >= len(there) || there[i].Name != name {
			return fmt.Errorf("%w: %s exists and was made by no sink: its column %d is not %s. "+
				"Rename it, or choose another sinks.name", vectordb.ErrRefused, relation, i+1, name)
		}
	}
	return nil
}

// free refuses a sink whose view would take the name of something else, before a table is filled for it.
func (x *Index) free(ctx context.Context, tx pgx.Tx) error {
	var view bool
	err := tx.QueryRow(ctx, "SELECT relkind = 'v' FROM pg_class WHERE oid = to_regclass($1)", x.opts.Name).Scan(&view)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return err
	case !view:
		return fmt.Errorf("%w: readers would ask a view %s, and something else has this name. Rename it, or choose "+
			"another sinks.name", vectordb.ErrRefused, x.opts.Name)
	}
	return checkColumns(ctx, tx, x.opts.Name, shown)
}

// addAttributes adds the columns that a table lacks, and shows the attributes to readers if the table is served.
func (x *Index) addAttributes(ctx context.Context, tx pgx.Tx, table string) error {
	if len(x.opts.Attributes) == 0 {
		return nil
	}
	there, err := columnsOf(ctx, tx, table)
	if err != nil {
		return err
	}
	var add []string
	if find(there, "attributes_offset") < 0 {
		add = append(add, "ADD COLUMN attributes_offset bigint NOT NULL DEFAULT -1")
	}
	for _, a := range x.opts.Attributes {
		switch i := find(there, a.Name); {
		case i < 0:
			add = append(add, fmt.Sprintf("ADD COLUMN %s %s", quoted(a.Name), typeOf(a.Type)))
		case there[i].Type != typeOf(a.Type):
			return fmt.Errorf("%w: column %s of table %s is %s, and the attribute is a %s, which is %s. "+
				"'giantstream sink refill pgvector' makes a new table", vectordb.ErrRefused, a.Name, table,
				there[i].Type, a.Type, typeOf(a.Type))
		}
	}
	if err := hurry(ctx, tx); err != nil {
		return err
	}
	if len(add) > 0 {
		if _, err := tx.Exec(ctx, fmt.Sprintf("ALTER TABLE %s %s", table, strings.Join(add, ", "))); err != nil {
			return err
		}
	}
	var c vectordb.Catalog
	if err := tx.QueryRow(ctx, fmt.Sprintf("SELECT catalog FROM %s_sink", x.opts.Name)).Scan(&c); err != nil {
		return err
	}
	for _, t := range c.Tables {
		if t.Serial == c.Served && t.Name(x.opts.Name) == table {
			return x.show(ctx, tx, table)
		}
	}
	return nil
}

// show leads the view to a table. PostgreSQL neither takes a column out of a view nor moves one, and a view that is
// made anew loses its grants: attributes that are not configured any more stay as nulls.
func (x *Index) show(ctx context.Context, tx pgx.Tx, table string) error {
	there, err := columnsOf(ctx, tx, x.opts.Name)
	if err != nil {
		return err
	}
	columns := slices.Clone(shown)
	columns[1] = "embedding::vector AS embedding"
	left := slices.Clone(x.opts.Attributes)
	for _, c := range there[min(len(columns), len(there)):] {
		i := slices.IndexFunc(left, func(a vectordb.Attribute) bool { return a.Name == c.Name })
		switch {
		case i < 0:
			columns = append(columns, fmt.Sprintf("NULL::%s AS %s", c.Type, quoted(c.Name)))
			continue
		case c.Type != typeOf(left[i].Type):
			return fmt.Errorf("%w: column %s of the view %s is %s, and the attribute is a %s, which is %s. Run "+
				"DROP VIEW %s and start the sink again, which makes the view; then grant readers SELECT on it",
				vectordb.ErrRefused, c.Name, x.opts.Name, c.Type, left[i].Type, typeOf(left[i].Type), x.opts.Name)
		}
		columns = append(columns, quoted(c.Name))
		left = slices.Delete(left, i, i+1)
	}
	for _, a := range left {
		columns = append(columns, quoted(a.Name))
	}
	_, err = tx.Exec(ctx, fmt.Sprintf("CREATE OR REPLACE VIEW %s AS SELECT %s FROM %s", x.opts.Name,
		strings.Join(columns, ", "), table))
	return err
}

// setAttributes changes the attributes of nodes that have a row.
func (x *Index) setAttributes(ctx context.Context, tx pgx.Tx, table string, records []vectordb.Record) error {
	if len(records) == 0 || len(x.opts.Attributes) == 0 {
		return nil
	}
	set := []string{"attributes_offset = r.o"}
	fields := []string{"i text", "o bigint"}
	for i, a := range x.opts.Attributes {
		set = append(set, fmt.Sprintf("%s = r.a%d", quoted(a.Name), i))
		fields = append(fields, fmt.Sprintf("a%d %s", i, typeOf(a.Type)))
	}
	// JSON, because an array of arrays of text of different lengths is no array.
	all := make([]map[string]any, len(records))
	for i, r := range records {
		all[i] = map[string]any{"i": r.NodeID, "o": r.Offset}
		for j, v := range r.Values {
			if v != nil {
				all[i][fmt.Sprintf("a%d", j)] = v
			}
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, fmt.Sprintf(`UPDATE %s AS t SET %s FROM jsonb_to_recordset($1::jsonb) AS r (%s)
		WHERE t.node_id = r.i AND t.topic_offset < r.o AND t.attributes_offset < r.o`, table, strings.Join(set, ", "),
		strings.Join(fields, ", ")), data)
	return err
}
