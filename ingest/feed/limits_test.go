package feed_test

import (
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest"
	"giantstream/ingest/client"
	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"
	"giantstream/ingest/internal/kafkatest"
)

// TestRefusedRecordsAreLetters: what is too large to be held, or says that it is from the future,
// becomes a dead letter, and its neighbours are read.
func TestRefusedRecordsAreLetters(t *testing.T) {
	e := kafkatest.Start(t, 1)
	small, err := client.New(client.Options{Brokers: e.Client.Brokers(), RecordBytes: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(small.Close)
	c := config(e)
	c.Client, c.MaxFuture = small, time.Hour
	huge := `{"id":"a","text":"` + strings.Repeat("x", 200_000) + `"}`
	e.Send(t,
		kafka.Message{Topic: "nodes", Key: []byte("a"), Value: []byte(`{"id":"a","text":"first"}`), Time: day},
		kafka.Message{Topic: "nodes", Key: []byte("a"), Value: []byte(huge), Time: day},
		kafka.Message{Topic: "nodes", Key: []byte("a"), Value: []byte(`{"id":"a","text":"ahead"}`),
			Time: day.Add(2 * time.Hour)},
		kafka.Message{Topic: "nodes", Key: []byte("a"), Value: []byte(`{"id":"a","text":"override"}`), Time: day,
			Headers: []kafka.Header{{Key: ingest.EventTimeHeader, Value: []byte("9999-01-01T00:00:00Z")}}},
		kafka.Message{Topic: "nodes", Key: []byte("a"), Value: []byte(`{"id":"a","text":"bad"}`), Time: day,
			Headers: []kafka.Header{{Key: ingest.EventTimeHeader, Value: []byte("soon")}}},
	)
	got := drain(t, open(t, c, 0, nil))
	if len(got.Mutations) != 2 || got.Mutations[0].Text != "first" || got.Mutations[1].Text != "override" {
		t.Errorf("mutations %+v", got.Mutations)
	}
	if us := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro(); got.Mutations[1].Version.EventTime != us {
		t.Errorf("the override has event time %d", got.Mutations[1].Version.EventTime)
	}
	letters := map[int64]deadletter.Letter{}
	for l, err := range deadletter.List(t.Context(), e.Client, e.Topics.DeadLetters, deadletter.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		letters[l.Offset] = l
	}
	if l := letters[1]; l.Code != decode.RecordTooLarge || l.Size != int64(len(huge)) || !l.Truncated() || l.SHA256 == "" {
		t.Errorf("letter of the huge record: %s, %d bytes", l.Code, l.Size)
	}
	if l := letters[2]; l.Code != decode.FutureTime || l.Truncated() {
		t.Errorf("letter of the record from the future: %+v", l)
	}
	if l := letters[4]; l.Code != decode.BadEventTime {
		t.Errorf("letter of the bad header: %+v", l)
	}
	if len(letters) != 3 {
		t.Errorf("%d letters, want 3", len(letters))
	}
}
