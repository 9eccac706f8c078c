package feed_test

import (
	"context"
	"net/http"
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
