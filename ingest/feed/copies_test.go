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
	copyInto(t, e, e.Topics.Edges, func() (*decode.Decoder, error) {
		return decode.Edges(mapping, kafkatest.Limits(), 1)
	})
	return readCopies(t, e, mapping)
}

// copyInto has what the source topic holds copied to a topic.
func copyInto(t *testing.T, e *kafkatest.Env, topic string, decoder func() (*decode.Decoder, error)) {
	t.Helper()
	o := repartition.Options{Client: e.Client, RecordBytes: 64 << 10, DeadLetters: e.Topics.DeadLetters, Log: e.Log,
		Clock:  func() time.Time { return day },
		Routes: []repartition.Route{{From: e.Topic("source"), To: topic, Group: e.Group, Decoder: decoder}}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- repartition.Run(ctx, o) }()
	if err := retry.Poll(ctx, 20*time.Millisecond, func() (bool, error) {
		open := int64(0)
		err := repartition.Lag(ctx, e.Client, o.Routes, func(_ string, _ int, _, left int64) { open += left })
		return open == 0, err
	}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
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

// copiesAgain sends what a topic with copies holds to it once more.
func copiesAgain(t *testing.T, e *kafkatest.Env) {
	t.Helper()
	again := e.Read(t, e.Topics.Edges)
	for i := range again {
		again[i] = kafka.Message{Topic: e.Topics.Edges, Key: again[i].Key, Value: again[i].Value, Time: again[i].Time,
			Headers: again[i].Headers}
	}
	e.Send(t, again...)
}

// The dead letter of a copy is one of the record that a producer has sent: it names its place, and however often the
// record is copied, it is one letter, which is closed once. A replay sends the copy to the topic with the copies.
// Letters of earlier releases, which name the place of the copy, are replayed and dismissed as before.
func TestALetterOfACopyIsThatOfItsOriginal(t *testing.T) {
	e := kafkatest.Start(t, 3)
	mapping := kafkatest.Mapping().Edges
	topics := e.Topics
	topics.Origins = map[string]string{e.Topics.Edges: e.Topic("source")}
	list := func(f deadletter.Filter) (letters []deadletter.Letter) {
		t.Helper()
		for l, err := range deadletter.List(t.Context(), e.Client, topics.DeadLetters, f) {
			if err != nil {
				t.Fatal(err)
			}
			letters = append(letters, l)
		}
		return letters
	}
	replay := func() {
		t.Helper()
		done, err := deadletter.Replay(t.Context(), e.Client, topics, deadletter.Filter{}, nil, time.Now)
		if err != nil || done.Sent != 1 {
			t.Fatalf("replayed %+v, %v", done, err)
		}
		if open := list(deadletter.Filter{}); len(open) != 0 {
			t.Fatalf("open after a replay: %+v", open)
		}
	}
	copied(t, e, mapping, kafka.Message{Key: []byte("x"), Value: []byte(`{"src":"A","dst":"B"}`)},
		kafka.Message{Key: []byte("x"), Value: []byte(`{"src":"A"}`)})
	copiesAgain(t, e)
	readCopies(t, e, mapping)

	var want deadletter.Origin
	for _, m := range e.Read(t, "source") {
		if string(m.Value) == `{"src":"A"}` {
			want = deadletter.Origin{Topic: e.Topic("source"), Partition: m.Partition, Offset: m.Offset,
				CopiedTo: e.Topics.Edges}
		}
	}
	for _, topic := range []string{"", e.Topic("source"), e.Topics.Edges} {
		if got := list(deadletter.Filter{Topic: topic}); len(got) != 1 || got[0].Origin != want {
			t.Fatalf("letters of %q: %+v, want one of %s", topic, got, want)
		}
	}
	places := map[deadletter.Origin]bool{}
	for _, l := range list(deadletter.Filter{Repeated: true}) {
		places[l.Place()] = true
	}
	if len(places) != 2 {
		t.Errorf("the copies were at %v", places)
	}

	before := len(e.Read(t, "source"))
	replay()
	copiesAgain(t, e)
	readCopies(t, e, mapping)
	if after := len(e.Read(t, "source")); after != before {
		t.Errorf("the source has %d records, had %d", after, before)
	}
	// The replayed record is one of its own. It is on the topic twice now.
	failed := list(deadletter.Filter{})
	if len(failed) != 2 || failed[0].ReplayOf != want.String() || failed[0].Topic != e.Topics.Edges {
		t.Fatalf("failed again: %+v", failed)
	}
	dismiss := func(n int) {
		t.Helper()
		if got, err := deadletter.Dismiss(t.Context(), e.Client, topics.DeadLetters, deadletter.Filter{}, "known",
			time.Now); err != nil || got != n {
			t.Fatalf("dismissed %d, %v; want %d", got, err, n)
		}
	}
	dismiss(2)

	w := deadletter.NewWriter(e.Client, topics.DeadLetters, time.Now)
	older := func(offset int64) {
		t.Helper()
		l := deadletter.Letter{Origin: deadletter.Origin{Topic: e.Topics.Edges, Partition: 1, Offset: offset},
			Code: decode.MissingDst, Key: []byte("A"), Value: []byte(`{"src":"A"}`), Time: day}
		if err := errors.Join(w.Publish(t.Context(), l), w.Flush(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	older(1000)
	replay()
	older(1001)
	dismiss(1)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// Of two copies of a record, the shard has refused the first because its time was too far ahead, and taken the second.
// Reading them again tells them apart.
func TestEachCopyIsRefusedByItself(t *testing.T) {
	e := kafkatest.Start(t, 1)
	c := config(e)
	c.Topics.Origins = map[string]string{e.Topics.Edges: e.Topic("source")}
	now := day.Add(-48 * time.Hour)
	c.MaxFuture, c.Clock = time.Hour, func() time.Time { return now }
	copied(t, e, kafkatest.Mapping().Edges, kafka.Message{Key: []byte("x"), Value: []byte(`{"src":"A","dst":"B"}`)})
	if said := drain(t, open(t, c, 0, nil)).Mutations; len(said) != 0 {
		t.Fatalf("%+v is not ahead", said)
	}
	copiesAgain(t, e)
	now = day
	c.Ahead = func(ctx context.Context) (map[deadletter.Origin]time.Time, error) {
		ahead := map[deadletter.Origin]time.Time{}
		for l, err := range deadletter.List(ctx, e.Client, c.Topics.DeadLetters,
			deadletter.Filter{Code: decode.FutureTime, All: true, Repeated: true}) {
			if err != nil {
				return nil, err
			}
			ahead[l.Place()] = l.Time
		}
		return ahead, nil
	}
	said := 0
	records, refused, err := c.Range(t.Context(), e.Topics.Edges, 0, 0, 2, func(mutation.Mutation) { said++ })
	if err != nil || records != 2 || refused != 1 || said != 1 {
		t.Errorf("%d records, %d refused, %d mutations, %v; want 2, 1 and 1", records, refused, said, err)
	}
}
