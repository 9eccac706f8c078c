package external

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/decode"
	"giantstream/ingest/repartition"
	"giantstream/stream/mutation"
)

var day = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)

// nodeRecord is the record of a node at an hour.
func nodeRecord(offset int64, id, text string, hour int) kafka.Message {
	m := kafka.Message{Key: []byte(id), Offset: offset, Time: day.Add(time.Duration(hour) * time.Hour)}
	if text != "" {
		m.Value = fmt.Appendf(nil, `{"id":%q,"text":%q}`, id, text)
	}
	return m
}

func newFiller(t *testing.T, m *model) *filler {
	t.Helper()
	limits := decode.Limits{RecordBytes: 1 << 20, TextBytes: 1 << 18, EdgesPerRecord: 10}
	d, err := decode.Nodes(decode.NodeMapping{ID: "id", Text: []string{"text"}}, limits, 1)
	if err != nil {
		t.Fatal(err)
	}
	return &filler{FillOptions: FillOptions{Model: m.client(t, nil), To: "vectors", Cached: new(atomic.Int64)}, decoder: d,
		sent: map[string]said{}}
}

// send returns the records that a fetch makes, and lets the filler have them as if it had sent them.
func (f *filler) send(t *testing.T, records ...kafka.Message) (sent []kafka.Message) {
	t.Helper()
	open, err := f.open(t.Context(), records)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.ask(t.Context(), open); err != nil {
		t.Fatal(err)
	}
	for i := range open {
		sent = append(sent, f.record(&open[i]))
		f.recallOne(&sent[len(sent)-1])
	}
	return sent
}

// What is sent is, for the decoder of the topic, the vector of the node's newest text, with the version of the record
// that stated it.
func TestRecordsAreVectors(t *testing.T) {
	m := start(t, &model{natural: 8})
	f := newFiller(t, m)
	sent := f.send(t, nodeRecord(3, "a", "old", 1), nodeRecord(4, "b", "late", 5), nodeRecord(5, "a", "new", 2),
		nodeRecord(6, "b", "early", 4), nodeRecord(7, "c", "new", 2), nodeRecord(8, "none", "", 1),
		kafka.Message{Key: []byte("bad"), Value: []byte("{"), Offset: 9})
	limits := decode.Limits{RecordBytes: 1 << 20, TextBytes: 1, EdgesPerRecord: 1}
	d, err := decode.Attributes(Mapping(8), mutation.Further, limits, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct {
		text   string
		offset int64
	}{"a": {"new", 5}, "b": {"late", 4}, "c": {"new", 7}}
	if len(sent) != len(want) {
		t.Fatalf("%d records were sent", len(sent))
	}
	for i := range sent {
		r := &sent[i]
		w := want[string(r.Key)]
		got, fault := d.Decode(decode.Record{Key: r.Key, Value: r.Value, Time: r.Time}, nil)
		if fault != nil || len(got) != 1 || len(got[0].Vectors) != 1 || got[0].ID != string(r.Key) ||
			!slices.Equal(got[0].Vectors[0].Numbers(), vectorOf(w.text, 8)) {
			t.Fatalf("%s: %+v, %v", r.Key, got, fault)
		}
		origin := repartition.Version(&kafka.Message{Headers: []kafka.Header{
			repartition.Origin(&kafka.Message{Offset: w.offset})}})
		if v := repartition.Version(r); v != origin {
			t.Errorf("%s has the version %d, want %d", r.Key, v, origin)
		}
	}
	var asked []string
	for _, q := range m.questions {
		asked = append(asked, q.Input...)
	}
	if slices.Sort(asked); !slices.Equal(asked, []string{"late", "new"}) {
		t.Errorf("asked for %q", asked)
	}
}

// Nothing is sent of a text whose vector is there, nor of one that is older than what is there.
func TestWhatIsThereIsNotAskedFor(t *testing.T) {
	m := start(t, &model{natural: 8})
	f := newFiller(t, m)
	for _, step := range []struct {
		record kafka.Message
		sends  string // "" for nothing
	}{
		{nodeRecord(1, "a", "one", 3), "one"},
		{nodeRecord(2, "a", "one", 4), ""},
		{nodeRecord(3, "a", "older than what was said again", 3), ""},
		{nodeRecord(4, "a", "two", 5), "two"},
		{nodeRecord(5, "a", "", 6), "{}"},
		{nodeRecord(6, "a", "", 7), ""},
		{nodeRecord(7, "a", "two", 8), "two"},
	} {
		got := ""
		for _, r := range f.send(t, step.record) {
			for _, text := range []string{"one", "two"} {
				if strings.Contains(string(r.Value), base64.StdEncoding.EncodeToString(numbers(vectorOf(text, 8)))) {
					got = text
				}
			}
			if string(r.Value) == "{}" {
				got = "{}"
			}
		}
		if got != step.sends {
			t.Errorf("record %d sends %q, want %q", step.record.Offset, got, step.sends)
		}
	}
	if n := f.Cached.Load(); n != 1 {
		t.Errorf("%d texts had their vectors", n)
	}
}

// Two workers that both have a partition send records with the same headers, and so versions, key and time: to those
// who read the topic, the second one repeats the first. A third that reads both asks for nothing.
func TestTwoWorkersSayTheSame(t *testing.T) {
	m := start(t, &model{natural: 8})
	records := []kafka.Message{nodeRecord(3, "a", "one", 1), nodeRecord(4, "b", "two", 5), nodeRecord(5, "a", "three", 2)}
	third := newFiller(t, m)
	var both [2][]kafka.Message
	for k := range both {
		both[k] = newFiller(t, m).send(t, records...)
		for i := range both[k] {
			third.recallOne(&both[k][i])
		}
	}
	if len(both[0]) != 2 || !reflect.DeepEqual(both[0], both[1]) {
		t.Errorf("the workers sent\n%v\n%v", both[0], both[1])
	}
	if sent := third.send(t, records...); len(sent) != 0 {
		t.Errorf("a third worker sends %v", sent)
	}
}
