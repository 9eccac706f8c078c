package pgvector_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"giantstream/internal/canary"
	"giantstream/internal/retry"
	"giantstream/sink/embedding"
	"giantstream/sink/vectordb"
	"giantstream/sink/vectordb/pgvector"
	"giantstream/sink/vectordb/pgvector/pgserver"
	"giantstream/sink/vectordb/vectordbtest"
)

func open(t testing.TB, url string, attributes ...vectordb.Attribute) *pgvector.Index {
	t.Helper()
	x, err := pgvector.New(pgvector.Options{URL: url, Name: "items", M: 8, EFConstruction: 32, Attributes: attributes,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func TestIndex(t *testing.T) {
	server := pgserver.Start(t)
	vectordbtest.Run(t, func(t *testing.T) vectordbtest.Target {
		url := server.Database(t)
		c := connect(t, url)
		return vectordbtest.Target{
			Open:       func() vectordb.Index { return open(t, url, vectordbtest.Attributes...) },
			Rows:       func() map[string]vectordbtest.Seen { return pgserver.Rows(t, c, "items") },
			Exact:      true,
			Vectorless: true,
			Attributes: true,
		}
	})
}

// TestSearch: a search in the view uses the index of its table, also after a switch to another dimension.
func TestSearch(t *testing.T) {
	url := pgserver.Start(t).Database(t)
	x := open(t, url)
	if _, err := x.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := connect(t, url)
	for serial, dim := range []int{0, 8, 5} {
		if dim == 0 {
			continue
		}
		table := vectordb.Table{Serial: int64(serial), Generation: int64(serial), Dim: dim}
		var records []vectordb.Record
		for i := range 500 {
			v := make([]float32, dim)
			v[i%dim], v[(i/dim)%dim] = 1, float32(i)
			records = append(records, vectordb.Record{Offset: int64(i),
				Record: embedding.Record{NodeID: fmt.Sprint(i), Vector: v}})
		}
		for _, err := range []error{
			x.Create(t.Context(), table),
			x.Apply(t.Context(), vectordb.Batch{Changes: []vectordb.Change{{Table: table, Upserts: records}}}),
			x.Finish(t.Context(), table), x.Finish(t.Context(), table), // a restart repeats it
			x.Serve(t.Context(), table, vectordb.Catalog{Served: table.Serial}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		query := "'[" + strings.TrimSuffix(strings.Repeat("1,", dim), ",") + "]'"
		got, err := c.Query(t.Context(), "EXPLAIN SELECT node_id FROM items ORDER BY embedding <=> "+query+" LIMIT 5")
		if err != nil {
			t.Fatal(err)
		}
		plan, err := pgx.CollectRows(got, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if want := table.Name("items") + "_hnsw"; !strings.Contains(strings.Join(plan, "\n"), want) {
			t.Errorf("the search does not use %s:\n%s", want, strings.Join(plan, "\n"))
		}
	}
}

// Attributes come to a table that is served, the view keeps its grants whatever the attributes are, and a column of
// another type is refused.
func TestAttributesOfATableThatExists(t *testing.T) {
	url := pgserver.Start(t).Database(t)
	c := connect(t, url)
	table := vectordb.Table{Serial: 1, Generation: 1, Dim: 2}
	record := func(offset int64, values ...any) vectordb.Record {
		return vectordb.Record{Offset: offset, Record: embedding.Record{NodeID: "a", Generation: 1, Vector: []float32{1, 0}},
			OfAttributes: values != nil, Values: values}
	}
	columns := func() string {
		t.Helper()
		var all string
		if err := c.QueryRow(t.Context(),
			"SELECT to_jsonb(i) - '{node_id,embedding,generation,space,status,event_time,shard,"+
				"seq}'::text[] FROM items i", pgx.QueryExecModeExec).Scan(&all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	var x *pgvector.Index
	reopen := func(attributes ...vectordb.Attribute) error {
		t.Helper()
		x = open(t, url, attributes...)
		if _, err := x.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		return x.Create(t.Context(), table)
	}
	set := func(r vectordb.Record) {
		t.Helper()
		change := vectordb.Change{Table: table, Attributes: []vectordb.Record{r}}
		if err := x.Apply(t.Context(), vectordb.Batch{Changes: []vectordb.Change{change}}); err != nil {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(reopen())
	must(x.Apply(t.Context(), vectordb.Batch{Changes: []vectordb.Change{{Table: table,
		Upserts: []vectordb.Record{record(1)}}}}))
	catalog := vectordb.Catalog{Served: 1, Tables: []vectordb.Table{table}}
	must(x.Serve(t.Context(), table, catalog))
	_, err := c.Exec(t.Context(), "CREATE ROLE reader LOGIN; GRANT SELECT ON items TO reader")
	must(err)

	price := vectordb.Attribute{Name: "price", Type: vectordb.Number}
	brand := vectordb.Attribute{Name: "the-Brand", Type: vectordb.String}
	must(reopen(price))
	set(record(3, 19.5))
	set(record(2, 7.0)) // older
	if got := columns(); got != `{"price": 19.5}` {
		t.Errorf("after a price: %s", got)
	}
	must(reopen(brand, price))
	set(record(4, "b", nil))
	if got := columns(); got != `{"price": null, "the-Brand": "b"}` {
		t.Errorf("after a brand and no price: %s", got)
	}
	must(reopen(brand))
	must(x.Serve(t.Context(), table, catalog))
	if got := columns(); got != `{"price": null, "the-Brand": "b"}` {
		t.Errorf("after the price was taken from the configuration: %s", got)
	}
	must(reopen(price))
	set(record(5, 3.0))
	if got := columns(); got != `{"price": 3, "the-Brand": null}` {
		t.Errorf("after the price has come back, in place of the brand: %s", got)
	}
	price.Type = vectordb.String
	if err := reopen(price); !errors.Is(err, vectordb.ErrRefused) || !strings.Contains(err.Error(), "sink refill") {
		t.Errorf("another type: %v", err)
	}
	table.Serial = 2 // as after a refill
	must(reopen(price))
	if err := x.Serve(t.Context(), table, catalog); !errors.Is(err, vectordb.ErrRefused) ||
		!strings.Contains(err.Error(), "DROP VIEW items") {
		t.Errorf("another type in the view: %v", err)
	}
	var granted bool
	must(c.QueryRow(t.Context(), "SELECT has_table_privilege('reader', 'items', 'SELECT')").Scan(&granted))
	if !granted {
		t.Error("the view has lost its grants")
	}
}

// What has a name that the sink needs is refused, before a table is filled, and left as it is.
func TestNamesOfSomethingElse(t *testing.T) {
	server := pgserver.Start(t)
	table := vectordb.Table{Serial: 1, Generation: 1, Dim: 2}
	price := vectordb.Attribute{Name: "price", Type: vectordb.Number}
	for _, made := range []string{"TABLE items (node_id text)", "VIEW items AS SELECT 1 AS x",
		"TABLE items_g1_1 (x int)"} {
		url := server.Database(t)
		c := connect(t, url)
		if _, err := c.Exec(t.Context(), "CREATE "+made); err != nil {
			t.Fatal(err)
		}
		x := open(t, url, price)
		_, err := x.Open(t.Context())
		if err == nil {
			err = x.Create(t.Context(), table)
		}
		if !errors.Is(err, vectordb.ErrRefused) || !strings.Contains(err.Error(), "choose another sinks.name") {
			t.Errorf("CREATE %s: %v", made, err)
		}
		var columns int
		if err := c.QueryRow(t.Context(), "SELECT count(*) FROM information_schema.columns WHERE table_name = $1",
			strings.Fields(made)[1]).Scan(&columns); err != nil || columns != 1 {
			t.Errorf("CREATE %s: it has %d columns, %v", made, columns, err)
		}
	}
}

// TestPreflight: what is missing is said with what to do.
func TestPreflight(t *testing.T) {
	server := pgserver.Start(t)
	url := server.Database(t)
	c := connect(t, url)
	if _, err := c.Exec(t.Context(), "CREATE ROLE reader LOGIN"); err != nil {
		t.Fatal(err)
	}
	poor := strings.Replace(url, "postgres@", "reader@", 1)
	_, err := open(t, poor).Open(t.Context())
	if !errors.Is(err, vectordb.ErrRefused) || !strings.Contains(err.Error(), "CREATE EXTENSION vector") {
		t.Errorf("without the extension: %v", err)
	}
	if _, err := c.Exec(t.Context(), "CREATE EXTENSION vector"); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, poor).Open(t.Context()); !errors.Is(err, vectordb.ErrRefused) {
		t.Errorf("without the right to create tables: %v", err)
	}
	_, err = open(t, strings.Replace(url, server.Addr(), "127.0.0.1:1", 1)).Open(t.Context())
	if err == nil || retry.Final(err) {
		t.Errorf("a server that is away is to be tried again, got %v", err)
	}
	for id, ok := range map[string]bool{"B00X": true, "größe": true, "": true, "a\x00b": false, "\xff": false,
		strings.Repeat("x", 5000): false} {
		if err := open(t, url).Check(id); (err == nil) != ok {
			t.Errorf("id of %d bytes: %v", len(id), err)
		}
	}
}

func BenchmarkFill(b *testing.B) {
	vectordbtest.Fill(b, open(b, pgserver.Start(b).Database(b)))
}

// A connection string that is malformed is refused without a part of it.
func TestConnectionStringDoesNotShow(t *testing.T) {
	secret := canary.New(1)
	for _, form := range []string{"postgres://me:SECRET%zz@host/db", "postgres://me:pa/SECRET@host/db",
		"postgres://me:pa?SECRET@host/db",
		"postgres://host:SECRET/db", "host=h port=SECRET password=SECRET", "password = SECRET host=h port=x",
		"password='a SECRET",
		"password='a\\'SECRET' port=x", "postgres://me@host/db?sslmode=SECRET",
		"postgres://me@host/db?password=%SECRET"} {
		x, err := pgvector.New(pgvector.Options{URL: strings.ReplaceAll(form, "SECRET", secret), Name: "items"})
		if err != nil {
			if how := canary.Find(fmt.Sprintf("%v %+v %#v", err, err, err), secret); how != "" {
				t.Errorf("%s shows %s: %v", form, how, err)
			}
			continue
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
}
