package feed_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/client"
	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"
	"giantstream/ingest/internal/kafkatest"
	"giantstream/ingest/repartition"
	"giantstream/internal/retry"
	"giantstream/stream/mutation"
)

// copied sends records to a source topic, has them copied to the edges topic, and returns what the shards read there.
func copied(t *testing.T, e *kafkatest.Env, mapping decode.EdgeMapping, source ...kafka.Message) (
	said []mutation.Mutation) {
	t.Helper()
	from := e.Topic("source")
	if err := e.Client.EnsureTopics(t.Context(), client.TopicSpec{Name: from, Partitions: 2}); err != nil {
		t.Fatal(err)
	}
	for i := range source {
		source[i].Topic, source[i].Time = from, day
	}
	e.Send(t, source...)
	o := repartition.Options{Client: e.Client, RecordBytes: 64 << 10, DeadLetters: e.Topics.DeadLetters, Log: e.Log,
		Clock: func() time.Time { return day },
		Routes: []repartition.Route{{From: from, To: e.Topics.Edges, Group: e.Group,
			Decoder: func() (*decode.Decoder, error) { return decode.Edges(mapping, kafkatest.Limits(), 1) }}}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- repartition.Run(ctx, o) }()
	if err := retry.Poll(ctx, 20*time.Millisecond, func() (bool, error) {
		open, err := repartition.Lag(ctx, e.Client, o.Routes)
		return open == 0, err
	}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return readCopies(t, e, mapping)
}

func readCopies(t *testing.T, e *kafkatest.Env, mapping decode.EdgeMapping) (said []mutation.Mutation) {
	t.Helper()
	c := config(e)
	c.Mapping.Edges = mapping
	c.Topics.Origins = map[string]string{e.Topics.Edges: e.Topic("source")}
	for shard := range e.Shards {
		said = append(said, drain(t, open(t, c, shard, nil)).Mutations...)
	}
	return said
}

// A copy says what its original says to a pipeline that reads the source topic itself.
func TestACopySaysWhatItsOriginalSays(t *testing.T) {
	plain := kafkatest.Mapping().Edges
	kind := plain
	kind.Kind = `"similar"`
	replace := plain
	replace.Mode = decode.Replace
	changes := plain
	changes.Debezium = true
	for _, c := range []struct {
		name       string
		mapping    decode.EdgeMapping
		key, value string
	}{
		{"one edge", plain, `{"src":"N001","dst":"P00103"}`, ""},
		{"one edge, as Connect writes keys", plain, `{"schema":{},"payload":{"src":"N001","dst":"P00103"}}`, ""},
		{"one edge of a kind", kind, `{"src":"N001","dst":"P00103","kind":"similar"}`, ""},
		{"one edge of a list", replace, `{"src":"N001","dst":"P00103"}`, ""},
		{"all edges, by an object", plain, `{"src":"N001"}`, ""},
		{"all edges, by plain text", plain, `N001`, ""},
		{"an edge whose source is in the key", plain, `{"src":"N001"}`, `{"dst":"P00103"}`},
		{"a row that is gone", changes, `{"src":"N001","dst":"P00103"}`, `{"op":"d","before":null,"ts_ms":1714521600000}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			value := []byte(c.value)
			if c.value == "" {
				value = nil
			}
			d, err := decode.Edges(c.mapping, kafkatest.Limits(), 1)
			if err != nil {
				t.Fatal(err)
			}
			want, fault := d.Decode(decode.Record{Key: []byte(c.key), Value: value, Time: day}, nil)
			if fault != nil {
				t.Fatal(fault)
			}
			got := copied(t, kafkatest.Start(t, 3), c.mapping, kafka.Message{Key: []byte(c.key), Value: value})
			for i := range got {
				got[i].Version.Offset = 0
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("the copy says %+v, the original %+v", got, want)
			}
		})
	}
}

// A copy that became a dead letter still names one edge when it is replayed.
func TestAReplayedCopyKeepsTheKeyOfItsOriginal(t *testing.T) {
	e := kafkatest.Start(t, 3)
	byField, byConstant := kafkatest.Mapping().Edges, kafkatest.Mapping().Edges
	byField.Kind, byConstant.Kind = "kind", `"similar"`
	if said := copied(t, e, byField, kafka.Message{Key: []byte(`{"src":"N001","dst":"P00103"}`)}); len(said) != 0 {
		t.Fatalf("a null without the kind says %+v", said)
	}
	topics := e.Topics
	topics.Origins = map[string]string{e.Topics.Edges: e.Topic("source")}
	done, err := deadletter.Replay(t.Context(), e.Client, topics, deadletter.Filter{}, nil,
		func() time.Time { return day })
	if err != nil || done.Sent != 1 {
		t.Fatalf("replayed %+v, %v", done, err)
	}
	said := readCopies(t, e, byConstant)
	if len(said) != 2 { // the first copy and the replayed one
		t.Fatalf("got %+v", said)
	}
	for _, m := range said {
		if m.Op != mutation.DeleteEdge || m.ID != "N001" || m.Other != "P00103" {
			t.Errorf("got %+v, want that N001 loses its edge to P00103 alone", m)
		}
	}
}
