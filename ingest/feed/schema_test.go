package feed_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/sr"

	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"
	"giantstream/ingest/internal/kafkatest"
	"giantstream/ingest/internal/registrytest"
	"giantstream/ingest/schema"
	"giantstream/stream/mutation"
)

// A topic of Avro is read as one of JSON; while its registry is down the feed waits, and only what
// is bad in itself becomes a dead letter.
func TestAvroWaitsForItsRegistry(t *testing.T) {
	const text = `{"type": "record", "name": "Node", "fields": [{"name": "id", "type": "int"}, {"name": "text", ` +
		`"type": ["null", "string"]}]}`
	s := avro.MustParse(text)
	value := func(id int32, schemaID int) []byte {
		v, err := s.Encode(map[string]any{"id": id, "text": "Bic"})
		if err != nil {
			t.Fatal(err)
		}
		header, err := new(sr.ConfluentHeader).AppendEncode(nil, schemaID, nil)
		if err != nil {
			t.Fatal(err)
		}
		return append(header, v...)
	}
	e := kafkatest.Start(t, 1)
	e.Send(t,
		kafka.Message{Topic: "nodes", Key: []byte("1"), Value: value(1, 7), Time: day},
		kafka.Message{Topic: "nodes", Key: []byte("2"), Value: value(2, 8), Time: day},
		kafka.Message{Topic: "nodes", Key: []byte("3"), Value: []byte(`{"id": 3}`), Time: day},
		edge("1", "3"))
	registry := registrytest.Start(t, registrytest.Schema{ID: 7, Text: text})
	registry.Fail(http.StatusServiceUnavailable)

	c := config(e)
	r, err := schema.NewRegistry(schema.Options{URL: registry.URL, Clock: c.Clock})
	if err != nil {
		t.Fatal(err)
	}
	translator, err := schema.NewTranslator(schema.Avro, r, c.Limits.RecordBytes)
	if err != nil {
		t.Fatal(err)
	}
	c.Translators = map[string]*schema.Translator{e.Topics.Nodes: translator}
	f := open(t, c, 0, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	nodesAt := int64(0)
	for c.Metrics.Retries.Load() < 2 {
		b, err := f.Next(ctx, 10*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		nodesAt = b.Next[e.Topics.Nodes]
	}
	if letters := e.Read(t, "dead-letters"); nodesAt != 0 || len(letters) != 0 || r.Err() == nil {
		t.Fatalf("with the registry down: at offset %d, %d dead letters, Err %v", nodesAt, len(letters), r.Err())
	}

	registry.Fail(0)
	got := drain(t, f)
	ids := map[string]string{}
	for _, m := range got.Mutations {
		ids[m.ID] = m.Text
	}
	if _, three := ids["3"]; ids["1"] != "Bic" || !three || got.Next[e.Topics.Nodes] != 3 || r.Err() != nil {
		t.Errorf("got %v to %v; the registry: %v", ids, got.Next, r.Err())
	}
	letters := e.Read(t, "dead-letters")
	if len(letters) != 1 {
		t.Fatalf("%d dead letters, want 1", len(letters))
	}
	l, err := deadletter.Parse(letters[0])
	if err != nil || l.Code != decode.UnknownSchema || string(l.Value) != string(value(2, 8)) {
		t.Errorf("letter %+v, %v; want the value as it was, with %s", l, err, decode.UnknownSchema)
	}
}

// TestAvroKeysOfDebezium: a key with a schema is read by the mapping, as the value is. Its schema may be
// that of a record or of a string; a key that has no id in it is a dead letter. Tombstones say nothing.
func TestAvroKeysOfDebezium(t *testing.T) {
	schemas := []registrytest.Schema{
		{ID: 1, Text: `{"type":"record","name":"Key","namespace":"shop.inventory.products","fields":` +
			`[{"name":"sku","type":"string"}],"connect.name":"shop.inventory.products.Key"}`},
		{ID: 2, Text: `"string"`},
		{ID: 3, Text: `{"type":"record","name":"Envelope","fields":[{"name":"after","type":["null",` +
			`{"type":"record","name":"Value","fields":[{"name":"sku","type":"string"},{"name":"name","type":"string"},` +
			`{"name":"updated","type":{"type":"long","connect.version":1,"connect.name":"io.debezium.time.MicroTimestamp"}}` +
			`]}]},{"name":"op","type":"string"}]}`},
		{ID: 4, Text: `{"type":"record","name":"Other","fields":[{"name":"n","type":"int"}]}`},
	}
	encode := func(id int, v any) []byte {
		b, err := new(sr.ConfluentHeader).AppendEncode(nil, id, nil)
		if err == nil {
			b, err = avro.MustParse(schemas[id-1].Text).AppendEncode(b, v)
		}
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	key := func(sku string) []byte { return encode(1, map[string]any{"sku": sku}) }
	const day1972 = 76_204_800_000_000
	put := func(sku string) []byte {
		after := map[string]any{"sku": sku, "name": "pen", "updated": int64(day1972)}
		return encode(3, map[string]any{"op": "c", "after": after})
	}
	gone := func() []byte { return encode(3, map[string]any{"op": "d", "after": nil}) }
	e := kafkatest.Start(t, 1)
	e.Send(t,
		kafka.Message{Topic: "nodes", Key: key("P1"), Value: put("P1"), Time: day},
		kafka.Message{Topic: "nodes", Key: key("P2"), Value: gone(), Time: day},
		kafka.Message{Topic: "nodes", Key: key("P2"), Time: day},
		kafka.Message{Topic: "nodes", Key: encode(2, "P4"), Value: gone(), Time: day},
		kafka.Message{Topic: "nodes", Key: encode(4, map[string]any{"n": int32(5)}), Value: gone(), Time: day},
		kafka.Message{Topic: "nodes", Key: append([]byte{0, 0, 0, 0, 9}, "P6"...), Value: gone(), Time: day})
	c := config(e)
	c.Mapping.Nodes.Debezium, c.Mapping.Nodes.ID, c.Mapping.Nodes.Text = true, "sku", []string{"name"}
	c.Mapping.Nodes.EventTime = "updated"
	r, err := schema.NewRegistry(schema.Options{URL: registrytest.Start(t, schemas...).URL, Clock: c.Clock})
	if err != nil {
		t.Fatal(err)
	}
	translator, err := schema.NewTranslator(schema.Avro, r, c.Limits.RecordBytes)
	if err != nil {
		t.Fatal(err)
	}
	c.Translators = map[string]*schema.Translator{e.Topics.Nodes: translator}
	var got []string
	for _, m := range drain(t, open(t, c, 0, nil)).Mutations {
		got = append(got, fmt.Sprintf("%d %s at %d", m.Op, m.ID, m.Version.EventTime))
	}
	want := []string{fmt.Sprintf("%d P1 at %d", mutation.PutNode, day1972)}
	for _, sku := range []string{"P2", "P4"} {
		want = append(want, fmt.Sprintf("%d %s at %d", mutation.DeleteNode, sku, day.UnixMicro()))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for i, says := range []string{`{\"n\":5}`, "the registry does not know the key's schema"} {
		l, err := deadletter.Parse(e.Read(t, "dead-letters")[i])
		if err != nil || l.Code != decode.MissingID || !strings.Contains(l.Message, says) {
			t.Errorf("letter %d: %s %s, %v; want %s with %q", i, l.Code, l.Message, err, decode.MissingID, says)
		}
	}
}

// Whatever producers compress with is read.
func TestEveryCompressionIsRead(t *testing.T) {
	e := kafkatest.Start(t, 1)
	codecs := []kafka.Compression{kafka.Gzip, kafka.Snappy, kafka.Lz4, kafka.Zstd}
	for _, codec := range codecs {
		w := &kafka.Writer{Addr: kafka.TCP(e.Client.Brokers()...),
			Compression: codec, BatchTimeout: time.Millisecond, RequiredAcks: kafka.RequireAll}
		m := node(codec.String(), "a text that is worth compressing, worth compressing, worth compressing")
		m.Topic = e.Topics.Nodes
		if err := w.WriteMessages(t.Context(), m, m); err != nil {
			t.Fatalf("%s: %v", codec, err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]int{}
	for _, m := range drain(t, open(t, config(e), 0, nil)).Mutations {
		seen[m.ID]++
	}
	for _, codec := range codecs {
		if seen[codec.String()] != 2 {
			t.Errorf("%d records of 2 compressed with %s", seen[codec.String()], codec)
		}
	}
}
