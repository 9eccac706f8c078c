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

func open(t testing.TB, url string) *pgvector.Index {
	t.Helper()
	x, err := pgvector.New(pgvector.Options{URL: url, Name: "items", M: 8, EFConstruction: 32,
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

// rows reads what readers of a relation see.
func rows(t testing.TB, c *pgx.Conn, from string) map[string]vectordbtest.Seen {
	t.Helper()
	out := map[string]vectordbtest.Seen{}
	var id, vector string
	var s vectordbtest.Seen
	// Without a prepared statement: the view changes under it.
	got, err := c.Query(t.Context(), "SELECT node_id, coalesce(embedding::text, ''), generation, seq FROM "+from,
		pgx.QueryExecModeExec)
	if err == nil {
		_, err = pgx.ForEachRow(got, []any{&id, &vector, &s.Generation, &s.Seq}, func() error {
			s.Vector = vector
			out[id] = s
			return nil
		})
	}
	if err != nil && strings.Contains(err.Error(), "does not exist") {
		return nil // nothing is served yet
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestIndex(t *testing.T) {
	server := pgserver.Start(t)
	vectordbtest.Run(t, func(t *testing.T) vectordbtest.Target {
		url := server.Database(t)
		c := connect(t, url)
		return vectordbtest.Target{
			Open:       func() vectordb.Index { return open(t, url) },
			Rows:       func() map[string]vectordbtest.Seen { return rows(t, c, "items") },
			Exact:      true,
			Vectorless: true,
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
