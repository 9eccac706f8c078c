package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"giantstream/ingest/decode"
	"giantstream/sink/vectordb/pgvector/pgserver"
)

// tables are a shop's, with the types that shops have. Values of description are too large to lie in the row.
const tables = `
CREATE TABLE products (
	sku uuid PRIMARY KEY, name text NOT NULL, description text, brand text, price numeric(10,2) NOT NULL, weight numeric,
	sold boolean NOT NULL, since timestamptz, updated timestamp, day date, tags text[] NOT NULL DEFAULT '{}',
	sizes numeric(6,2)[], info jsonb, clicks bigint);
ALTER TABLE products ALTER description SET STORAGE EXTERNAL;
CREATE TABLE order_lines (order_id bigint, sku uuid, quantity int NOT NULL, placed timestamptz NOT NULL,
	PRIMARY KEY (order_id, sku));

CREATE FUNCTION sku(i int) RETURNS uuid LANGUAGE sql AS $$SELECT md5('product ' || i)::uuid$$;
CREATE FUNCTION add_products(first int, last int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO products SELECT sku(i), 'product ' || i || E' of "family"\n' || i % 7,
		CASE i % 3 WHEN 0 THEN repeat('long text ' || i || ' ', 400) WHEN 1 THEN 'short' END, 'brand ' || i % 5,
		(i * 7919 % 2000000 - 500) / 100.0, CASE i % 4 WHEN 0 THEN NULL WHEN 1 THEN i ELSE i / 8.0 END, i % 2 = 0,
		timestamptz '2026-03-01 10:02:00+01' + i * interval '1 day 1.000001 s',
		CASE WHEN i % 5 > 0 THEN timestamp '1969-12-30 01:02:03.000004' + i * interval '7 hours' END,
		CASE WHEN i % 6 > 0 THEN date '1969-12-01' + i * 41 END,
		CASE WHEN i % 2 = 0 THEN ARRAY['tag ' || i, 'ü, "x"'] ELSE '{}' END,
		CASE WHEN i % 3 > 0 THEN ARRAY[i / 4.0, -1] END, jsonb_build_object('i', i, 'of', 'a "shop"'), i * 100000000000
	FROM generate_series(first, last) i$$;
CREATE FUNCTION add_orders(first int, last int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO order_lines SELECT o, sku(1 + (o * 5 + l * l) % 60), 1 + l, 
		timestamptz '2026-03-01' + o * interval '1 hour'
	FROM generate_series(first, last) o, generate_series(0, 2) l ON CONFLICT DO NOTHING$$;
SELECT add_products(1, 60);
SELECT add_orders(1, 80);`

// changes are what becomes of the tables while the connectors follow them.
var changes = []string{
	// A large value that an update leaves alone is not in the event, until the table says that it should be.
	"UPDATE products SET price = price + 0.01 WHERE description LIKE 'long%'",
	"ALTER TABLE products REPLICA IDENTITY FULL",
	"UPDATE products SET price = price + 0.02, tags = tags || ARRAY['cheap'] WHERE description LIKE 'long%'",
	"SELECT add_products(61, 90)",
	"UPDATE products SET name = 'renamed ' || clicks, since = NULL WHERE clicks % 700000000000 = 0",
	"DELETE FROM products WHERE clicks % 1100000000000 = 0",
	// Another key: a deletion and a creation.
	"UPDATE products SET sku = md5(sku::text)::uuid WHERE clicks % 1300000000000 = 0",
	// The rows go without being named, and come back.
	"CREATE TABLE kept AS SELECT * FROM products",
	"TRUNCATE products",
	"INSERT INTO products SELECT * FROM kept",
	"SELECT add_orders(81, 100)",
	"DELETE FROM order_lines WHERE order_id % 10 = 0",
	"DELETE FROM order_lines WHERE order_id % 10 = 1 AND quantity = 2",
	"UPDATE order_lines SET sku = md5(sku::text)::uuid WHERE order_id % 10 = 2 AND quantity = 1",
}

// debeziumConfig maps the tables. Debezium's key of a product is an object, and so is that of a line of an order, which
// message.key.columns makes the order's.
const debeziumConfig = `
pipeline: test
shards: 2
ingest:
  repartition: true
  nodes:
    format: debezium
    id: sku
    text: [name, description]
    attributes: ["price:number", "weight:number", "sold:boolean", "since:time", "updated:time", "day:time",
      "tags:strings", "sizes:strings", info, brand, clicks]
  baskets: {topic: TOPIC.public.order_lines, format: debezium, id: order_id, items: sku, quantity: quantity,
    time: placed}
featurize: {projection_dim: 48}
embedding: {dim: 32}
train: {encoder: linear}
evaluate: {probe_rates: []}
http: {listen: ""}
`

// Debezium's connector follows tables of PostgreSQL: by Kafka Connect's JsonConverter with schemas, where decimals and
// times are what the schema says, without them, where the connector writes both as text, and by Apicurio's
// AvroConverter, with schemas in a registry. Every way rows, attributes and orders are those of the tables in the end,
// and what cannot be applied is a dead letter with the reason.
func TestRealDebezium(t *testing.T) {
	connect, registry := os.Getenv("GIANTSTREAM_REAL_CONNECT"), os.Getenv("GIANTSTREAM_REAL_REGISTRY")
	if connect == "" || registry == "" {
		t.Skip("needs Kafka Connect with Debezium: cmd/dev/test-real debezium")
	}
	server := pgserver.Start(t)
	address := server.Database(t)
	db, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // the server ends with the test
	execute := func(statement string) {
		t.Helper()
		if _, err := db.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	execute(tables)

	modes := []*debeziumMode{
		{name: "with schemas", settings: map[string]string{"value.converter.schemas.enable": "true"}},
		{name: "without schemas", settings: map[string]string{"value.converter.schemas.enable": "false",
			"decimal.handling.mode": "string", "time.precision.mode": "isostring"}},
		{name: "Avro", registry: registry + "/apis/ccompat/v7", settings: avroConverters(registry)},
	}
	for _, m := range modes {
		config := debeziumConfig
		if m.registry != "" {
			config = strings.Replace(config, "ingest:", "ingest:\n  schema_registry: {url: \""+m.registry+"\"}", 1)
		}
		m.config, m.place = realPlace(t, config)
		startConnector(t, connect, address, m.place.topic(""), m.settings)
	}
	for _, m := range modes {
		m.await(t, "nodes", "", 60)
		m.await(t, "public.order_lines", "", 1)
	}
	for _, statement := range changes {
		execute(statement)
	}
	const last = "00000000-0000-4000-8000-000000000000"
	execute("INSERT INTO products (sku, name, price, sold) VALUES ('" + last + "', 'the last', 1, true)")
	execute("INSERT INTO order_lines VALUES (1000, '" + last + "', 1, now())")
	texts, attributes, orders := tableRows(t, db)
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			m.await(t, "nodes", last, 1)
			m.await(t, "public.order_lines", last, 1)
			succeed(t, "run", "-c", m.config, "--until-idle")
			m.place.checkLog(t)
			got := m.place.outcome(t)
			gotTexts, gotAttributes, gotOrders := map[string]string{}, map[string]string{}, map[string]string{}
			for id, row := range got.rows {
				if !row.Deleted {
					gotTexts[id], gotAttributes[id] = row.Text, row.Attributes
				}
			}
			for id, o := range got.orders {
				if len(o.Items) > 0 {
					gotOrders[id] = fmt.Sprint(o.Items)
				}
			}
			sameMap(t, "text", gotTexts, texts)
			sameMap(t, "attributes", gotAttributes, attributes)
			sameMap(t, "order", gotOrders, orders)
			// Every third of 60 has a large value.
			refused := map[decode.Code]int{}
			for _, code := range got.refused {
				refused[code]++
			}
			sameMap(t, "dead letters", refused, map[decode.Code]int{decode.BadChange: 20, decode.Truncated: 1})
			t.Logf("%d products, %d orders, dead letters %v", len(texts), len(orders), refused)
		})
	}
}

// debeziumMode is how a connector writes the tables' changes to topics of a pipeline.
type debeziumMode struct {
	name     string
	registry string // URL of its schemas, "" for none
	settings map[string]string
	config   string
	place    place
}

// avroConverters are the settings with which keys and values are Avro as Confluent's serializers write it.
func avroConverters(registry string) map[string]string {
	settings := map[string]string{"schema.name.adjustment.mode": "avro", "field.name.adjustment.mode": "avro"}
	for _, part := range []string{"key", "value"} {
		converter := part + ".converter"
		settings[converter] = "io.apicurio.registry.utils.converter.AvroConverter"
		settings[converter+".apicurio.registry.url"] = registry + "/apis/registry/v2"
		settings[converter+".apicurio.registry.auto-register"] = "true"
		settings[converter+".apicurio.registry.as-confluent"] = "true"
		settings[converter+".apicurio.registry.headers.enabled"] = "false" // else the schema's id is no part of the value
	}
	return settings
}

// await returns when a topic of the pipeline has n values with some text in them.
func (m *debeziumMode) await(t *testing.T, topic, text string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	topic = m.place.topic(topic)
	for {
		found := 0
		ends, err := m.place.client.EndOffsets(ctx, topic)
		for partition, end := range ends[topic] {
			for r, failed := range m.place.client.Range(ctx, topic, partition, 0, end) {
				if err = failed; err != nil {
					break
				}
				if strings.Contains(string(r.Value), text) {
					found++
				}
			}
		}
		if found >= n {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("topic %s has %d of %d values with %s: %v", topic, found, n, text, err)
		case <-again.C:
		}
	}
}

// startConnector has Kafka Connect follow a database from now until the test ends. The names of topics begin with
// prefix, which ends in a dot; products go to the topic nodes.
func startConnector(t *testing.T, connect, database, prefix string, settings map[string]string) {
	t.Helper()
	db, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSuffix(prefix, ".")
	all := map[string]string{
		"connector.class":   "io.debezium.connector.postgresql.PostgresConnector",
		"plugin.name":       "pgoutput",
		"database.hostname": db.Hostname(), "database.port": db.Port(), "database.user": db.User.Username(),
		"database.password": "none", "database.dbname": strings.TrimPrefix(db.Path, "/"),
		"topic.prefix": name, "slot.name": strings.ReplaceAll(name, "-", "_"), "slot.drop.on.stop": "true",
		"publication.name":    strings.ReplaceAll(name, "-", "_"),
		"table.include.list":  "public.products,public.order_lines",
		"message.key.columns": "public.order_lines:order_id",
		"skipped.operations":  "none",
		"transforms":          "nodes", "transforms.nodes.type": "org.apache.kafka.connect.transforms.RegexRouter",
		"transforms.nodes.regex": `.*\.public\.products`, "transforms.nodes.replacement": prefix + "nodes",
		"value.converter":                           "org.apache.kafka.connect.json.JsonConverter",
		"topic.creation.default.partitions":         "3",
		"topic.creation.default.replication.factor": "1",
		"poll.interval.ms":                          "50",
	}
	for k, v := range settings {
		all[k] = v
	}
	body, err := json.Marshal(map[string]any{"name": name, "config": all})
	if err != nil {
		t.Fatal(err)
	}
	askConnect(t.Context(), t, http.MethodPost, connect+"/connectors", body)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if t.Failed() {
			t.Logf("connector: %s", askConnect(ctx, t, http.MethodGet, connect+"/connectors/"+name+"/status", nil))
		}
		askConnect(ctx, t, http.MethodDelete, connect+"/connectors/"+name, nil)
	})
}

func askConnect(ctx context.Context, t *testing.T, method, address string, body []byte) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	got, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s %s: %s, %v\n%s", method, address, answer.Status, err, got)
	}
	return got
}

// tableRows are the tables as a pipeline has them: texts, attributes as JSON, and the items of orders.
func tableRows(t *testing.T, db *pgx.Conn) (texts, attributes, orders map[string]string) {
	t.Helper()
	texts, attributes, orders = map[string]string{}, map[string]string{}, map[string]string{}
	var sku, name string
	var description, brand, info, clicks *string
	var price, weight *float64
	var sold bool
	var since, updated, day *time.Time
	var tags, sizes []string
	rows, err := db.Query(t.Context(), `SELECT sku::text, name, description, brand, price::float8, weight::float8, sold,
		since, updated, day::timestamp, tags, sizes::text[], info::text, clicks::text FROM products`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = pgx.ForEachRow(rows, []any{&sku, &name, &description, &brand, &price, &weight, &sold, &since, &updated, &day,
		&tags, &sizes, &info, &clicks}, func() error {
		texts[sku] = strings.TrimSuffix(name+"\n"+*cmp.Or(description, new(string)), "\n")
		has := map[string]any{"sold": sold}
		if len(tags) > 0 {
			has["tags"] = tags
		}
		for k, v := range map[string]*float64{"price": price, "weight": weight} {
			if v != nil {
				has[k] = *v
			}
		}
		for k, v := range map[string]*string{"brand": brand, "info": info, "clicks": clicks} {
			if v != nil {
				has[k] = *v
			}
		}
		for k, v := range map[string]*time.Time{"since": since, "updated": updated, "day": day} {
			if v != nil {
				has[k] = v.UTC().Format("2006-01-02T15:04:05.999999Z")
			}
		}
		if len(sizes) > 0 {
			has["sizes"] = sizes
		}
		b, err := json.Marshal(has)
		attributes[sku] = string(b)
		tags, sizes = nil, nil
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var order string
	var items []string
	rows, err = db.Query(t.Context(), "SELECT order_id::text, array_agg(sku::text) FROM order_lines GROUP BY order_id")
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&order, &items}, func() error {
			slices.Sort(items)
			orders[order] = fmt.Sprint(items)
			items = nil
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return texts, attributes, orders
}
