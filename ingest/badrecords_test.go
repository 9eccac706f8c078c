package ingest_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/backfill"
	"giantstream/ingest/client"
	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"
	"giantstream/ingest/feed"
	"giantstream/ingest/internal/kafkatest"
	"giantstream/stream/mutation"
)

var now = time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)

func clock() time.Time { return now }

func mapping() decode.Mapping {
	m := kafkatest.Mapping()
	m.Nodes.EventTime, m.Edges.Weight, m.Edges.Kind = "at", "weight", "kind"
	m.Nodes.Attributes = []decode.Attribute{{Name: "note", Type: decode.String, Path: "note"}}
	return m
}

// readAll reads all shards to their ends.
func readAll(t *testing.T, e *kafkatest.Env) []mutation.Mutation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all []mutation.Mutation
	for shard := range e.Shards {
		f, err := feed.Open(ctx, feed.Config{
			Client: e.Client, Topics: e.Topics, Mapping: mapping(), Limits: kafkatest.Limits(),
			Shards: e.Shards, Clock: func() time.Time { return now }, Log: e.Log,
		}, shard, nil)
		if err != nil {
			t.Fatal(err)
		}
		for caughtUp := false; !caughtUp; {
			b, err := f.Next(ctx, 10*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, b.Mutations...)
			caughtUp = b.CaughtUp
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func list(t *testing.T, e *kafkatest.Env, f deadletter.Filter) map[string]deadletter.Letter {
	t.Helper()
	out := map[string]deadletter.Letter{}
	for l, err := range deadletter.List(t.Context(), e.Client, e.Topics.DeadLetters, f) {
		if err != nil {
			t.Fatal(err)
		}
		key := string(l.Value)
		if l.Truncated() {
			key = key[:20]
		}
		if _, twice := out[key]; twice {
			t.Errorf("%s is listed twice", key)
		}
		out[key] = l
	}
	return out
}

func summary(ms []mutation.Mutation) []string {
	var out []string
	for _, m := range ms {
		out = append(out, fmt.Sprintf("%d %s>%s %s", m.Op, m.ID, m.Other, m.Text))
	}
	slices.Sort(out)
	return out
}

// TestBadRecords sends two files of bad records through: every bad one ends in the dead letters
// with its reason, every good one becomes a mutation.
func TestBadRecords(t *testing.T) {
	e := kafkatest.Start(t, 3)
	dir := t.TempDir()
	bad, err := os.ReadFile("testdata/bad-nodes.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	huge := `{"id":"huge","text":"` + strings.Repeat("word ", 2_000_000) + `"}` // 10 MB
	long := `{"id":"long","text":"` + strings.Repeat("word ", 60_000) + `"}`    // over the limit of texts
	noted := `{"id":"noted","text":"x","note":"` + strings.Repeat("word ", 1000) + `"}`
	bad = append(bad, huge+"\n"+long+"\n"+noted+"\n"...)
	if err := os.WriteFile(filepath.Join(dir, "nodes.jsonl"), bad, 0o644); err != nil {
		t.Fatal(err)
	}
	o := backfill.Options{Client: e.Client, Topics: e.Topics, Mapping: mapping(), Limits: kafkatest.Limits(),
		Clock: func() time.Time { return now }}
	if o.Nodes, err = backfill.Files(filepath.Join(dir, "nodes.jsonl")); err != nil {
		t.Fatal(err)
	}
	if o.Edges, err = backfill.Files("testdata/bad-edges.jsonl"); err != nil {
		t.Fatal(err)
	}
	if _, err := backfill.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	// What a backfill would not send: a text of 10 MB, a wrong key, an unreadable key, foreign
	// bytes on the mirror topic, a null without a key.
	elsewhere := "elsewhere"
	for client.Partition([]byte(elsewhere), 3) == client.Partition([]byte("n1"), 3) {
		elsewhere += "!"
	}
	wrong := kafka.Message{Topic: "nodes", Key: []byte("n1"), Value: fmt.Appendf(nil, `{"id":%q}`, elsewhere)}
	many := kafka.Message{Topic: "edges", Key: []byte("n1"),
		Value: []byte(`{"src":"n1","dst":[` + strings.Repeat("1,", 10_000) + `1]}`)}
	direct := `{"id":"direct","text":"` + huge[22:]
	e.Send(t, wrong, many,
		kafka.Message{Topic: "nodes", Key: []byte("direct"), Value: []byte(direct)},
		kafka.Message{Topic: "nodes", Key: []byte("\xff"), Value: []byte(`{"text":"bad key"}`)},
		kafka.Message{Topic: "mirror", Key: []byte("n1"), Value: []byte("foreign")})

	got := summary(readAll(t, e))
	want := []string{
		"1 n1> first", "1 n1> late, older", "1 n1> second, newer", "1 n1> second, newer", "1 n8> good",
		"2 never-seen> ",
		"3 n1>n8 ", "3 n1>n8 ", "3 n1>n9 ", "3 n1>unknown-node ", "3 n8>n1 ", "4 unknown-node>n1 ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("mutations\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	codes := map[string]decode.Code{
		`{"id":"n2","text":"cut off`:                     decode.BadJSON,
		"{\"id\":\"n3\",\"text\":\"bad \xff bytes\"}":    decode.BadUTF8,
		`{"text":"no id"}`:                               decode.MissingID,
		`{"id":"","text":"empty id"}`:                    decode.BadID,
		`{"id":"n4","text":{"title":"an object"}}`:       decode.BadType,
		`{"id":"n5","at":"not a time"}`:                  decode.BadEventTime,
		`["not","an","object"]`:                          decode.BadType,
		`{"id":"n6","text":"\ud800 half a pair"}`:        decode.BadUTF8,
		`{"id":"n7","text":"good"} trailing`:             decode.BadJSON,
		huge[:20]:                                        decode.RecordTooLarge,
		long:                                             decode.TextTooLarge,
		noted:                                            decode.AttributesTooLarge,
		`{"src":"n1","dst":"n1"}`:                        decode.SelfLoop,
		`{"src":"n1","dst":["n8","n1",{"id":"x"},"n9"]}`: decode.SelfLoop,
		`{"dst":"n1"}`:                                   decode.MissingSrc,
		`{"src":"n1"}`:                                   decode.MissingDst,
		`{"src":"n1","dst":1.5}`:                         decode.BadType,
		"{\"src\":\"n1\",\"dst\":\"\xc3(\"}":             decode.BadUTF8,
		`{"src":"n1","dst":"n8",}`:                       decode.BadJSON,
		`{"src":"n1","dst":"n8","deleted":"maybe"}`:      decode.BadType,
		`{"src":"n1","dst":"n8","weight":-1}`:            decode.BadWeight,
		`{"src":"n1","dst":"n8","kind":{"no":"kind"}}`:   decode.BadKind,
		string(wrong.Value):                              decode.KeyMismatch,
		string(many.Value):                               decode.TooManyEdges,
		direct[:20]:                                      decode.RecordTooLarge,
		`{"text":"bad key"}`:                             decode.BadUTF8,
		"foreign":                                        decode.BadMirror,
	}
	letters := list(t, e, deadletter.Filter{})
	gotCodes := map[string]decode.Code{}
	all := map[decode.Code]bool{}
	for v, l := range letters {
		gotCodes[v] = l.Code
		all[l.Code] = true
		if l.Message == "" || l.At.IsZero() || l.Time.IsZero() || l.Topic == "" {
			t.Errorf("letter %+v lacks something", l)
		}
	}
	for v, c := range codes {
		if gotCodes[v] != c {
			t.Errorf("%.60q is %q, want %q", v, gotCodes[v], c)
		}
	}
	if len(gotCodes) != len(codes) {
		t.Errorf("%d dead letters, want %d: %.40q", len(gotCodes), len(codes), slices.Sorted(maps.Keys(gotCodes)))
	}
	// Those of schemas, change events, orders, vectors and CSV are not of nodes and edges, see feed, decode and
	// backfill; a foreign record is no letter.
	schemas := map[decode.Code]bool{decode.BadEncoding: true, decode.UnknownSchema: true, decode.Foreign: true,
		decode.FutureTime: true, decode.BadCSV: true, decode.BadChange: true, decode.Truncated: true,
		decode.IDChanged: true, decode.MissingItem: true, decode.TooManyItems: true, decode.VectorLength: true,
		decode.VectorNotFinite: true, decode.VectorZero: true, decode.VectorOverflow: true}
	for _, c := range decode.Codes() {
		if !all[c] && !schemas[c] {
			t.Errorf("no letter has code %s", c)
		}
	}
	if l := letters[direct[:20]]; !l.Truncated() || l.Size != int64(len(direct)) ||
		!bytes.Equal(l.Value, []byte(direct[:deadletter.CutBytes])) {
		t.Errorf("letter of %d bytes for a record of %d", len(l.Value), l.Size)
	}
	if f := letters[huge[:20]]; f.File == "" || f.Line != 16 {
		t.Errorf("the huge line is from %s", f.Origin)
	}

	// A second reading writes the same letters again; their origins tell.
	readAll(t, e)
	if n := len(e.Read(t, "dead-letters")); n < 2*len(codes)-1 {
		t.Errorf("%d letters on the topic after two readings", n)
	}
	if again := list(t, e, deadletter.Filter{}); len(again) != len(codes) {
		t.Errorf("%d letters listed after two readings, want %d", len(again), len(codes))
	}
}

func TestReplay(t *testing.T) {
	e := kafkatest.Start(t, 2)
	at := time.UnixMilli(1_600_000_000_000)
	e.Send(t,
		kafka.Message{Topic: "nodes", Key: []byte("a"), Value: []byte(`{"id":"a","text":{}}`), Time: at},
		kafka.Message{Topic: "nodes", Key: []byte("a"), Value: []byte(`{"id"`), Time: at},
		kafka.Message{Topic: "edges", Key: []byte("a"), Value: []byte(`{"src":"a","dst":"a"}`), Time: at})
	readAll(t, e)

	done, err := deadletter.Replay(t.Context(), e.Client, e.Topics, deadletter.Filter{Code: decode.BadType},
		nil, clock)
	if err != nil || done != (deadletter.Replayed{Sent: 1}) {
		t.Fatalf("replay: %+v, %v", done, err)
	}
	msgs := e.Read(t, "nodes")
	m := msgs[len(msgs)-1]
	if len(msgs) != 3 || string(m.Key) != "a" || string(m.Value) != `{"id":"a","text":{}}` || !m.Time.Equal(at) ||
		m.Partition != client.Partition([]byte("a"), 2) {
		t.Fatalf("replayed %+v", m)
	}

	// It fails again, and its new letter says where it comes from.
	readAll(t, e)
	var origins, replays []string
	var open []bool
	for l, err := range deadletter.List(t.Context(), e.Client, e.Topics.DeadLetters,
		deadletter.Filter{Topic: e.Topics.Nodes, Code: decode.BadType, All: true}) {
		if err != nil {
			t.Fatal(err)
		}
		origins, replays = append(origins, l.String()), append(replays, l.ReplayOf)
		open = append(open, l.Replayed.IsZero())
	}
	if !reflect.DeepEqual(replays, []string{"", origins[0]}) {
		t.Errorf("letters of %v are replays of %q", origins, replays)
	}
	// Only the new one is open, and the next replay sends only that.
	if !reflect.DeepEqual(open, []bool{false, true}) {
		t.Errorf("open: %v", open)
	}
	if l := list(t, e, deadletter.Filter{Code: decode.BadType}); len(l) != 1 || l[`{"id":"a","text":{}}`].ReplayOf == "" {
		t.Errorf("listed after the replay: %v", l)
	}
	for _, want := range []int{1, 0} {
		done, err := deadletter.Replay(t.Context(), e.Client, e.Topics, deadletter.Filter{Code: decode.BadType}, nil, clock)
		if err != nil || done != (deadletter.Replayed{Sent: want}) {
			t.Errorf("replay: %+v, %v, want %d", done, err, want)
		}
	}
	readAll(t, e) // fails for the third time
	if n := len(list(t, e, deadletter.Filter{Topic: e.Topics.Edges})); n != 1 {
		t.Errorf("%d letters of edges, want 1", n)
	}
	for since, want := range map[time.Time]int{now: 1, now.Add(time.Millisecond): 0} {
		if n := len(list(t, e, deadletter.Filter{Code: decode.SelfLoop, Since: since})); n != want {
			t.Errorf("%d letters since %v, want %d", n, since, want)
		}
	}
}

// TestForeignRecordsHideNoLetters: another program's record on the dead-letter topic is shown as what
// it is, and everything else goes on.
func TestForeignRecordsHideNoLetters(t *testing.T) {
	e := kafkatest.Start(t, 1)
	e.Send(t, kafka.Message{Topic: "dead-letters", Value: []byte("hello")},
		kafka.Message{Topic: "dead-letters", Headers: []kafka.Header{{Key: "dlq-format", Value: []byte("9")}}})
	e.Send(t, kafka.Message{Topic: "nodes", Key: []byte("a"), Value: []byte(`{"id":"a","text":{}}`)})
	readAll(t, e)
	letters := list(t, e, deadletter.Filter{})
	if l := letters["hello"]; !l.Foreign() || l.Topic != e.Topics.DeadLetters || l.Offset != 0 || l.Message == "" {
		t.Errorf("the foreign record is listed as %+v", l)
	}
	if l := letters[`{"id":"a","text":{}}`]; l.Code != decode.BadType {
		t.Errorf("the letter after it is listed as %+v", l)
	}
	if n := len(list(t, e, deadletter.Filter{Code: decode.Foreign})); n != 2 {
		t.Errorf("%d foreign records, want 2", n)
	}
	done, err := deadletter.Replay(t.Context(), e.Client, e.Topics, deadletter.Filter{}, nil, clock)
	if err != nil || done != (deadletter.Replayed{Sent: 1, Foreign: 2}) {
		t.Errorf("replay: %+v, %v", done, err)
	}
}

// TestReplayWritesToItsOwnTopics: a letter that names another topic is not sent there.
func TestReplayWritesToItsOwnTopics(t *testing.T) {
	e := kafkatest.Start(t, 1)
	e.Send(t, kafka.Message{Topic: "nodes", Key: []byte("a"), Value: []byte(`{"id":"a","text":{}}`)})
	readAll(t, e)
	letter := e.Read(t, "dead-letters")[0]
	for i, h := range letter.Headers {
		if h.Key == "dlq-topic" {
			letter.Headers[i].Value = []byte("embeddings")
		}
	}
	e.Send(t, kafka.Message{Topic: "dead-letters", Value: letter.Value, Headers: letter.Headers})
	done, err := deadletter.Replay(t.Context(), e.Client, e.Topics, deadletter.Filter{}, nil, clock)
	if err != nil || done != (deadletter.Replayed{Sent: 1, Elsewhere: 1}) {
		t.Errorf("replay: %+v, %v", done, err)
	}
	if nodes, other := len(e.Read(t, "nodes")), len(e.Read(t, "embeddings")); nodes != 2 || other != 0 {
		t.Errorf("%d records in nodes and %d in embeddings, want 2 and 0", nodes, other)
	}
}

// TestReplayUnderABetterMapping: the ids were mapped wrongly, so the records were sent without
// keys; with the right mapping a replay mends that.
func TestReplayUnderABetterMapping(t *testing.T) {
	e := kafkatest.Start(t, 4)
	var want []string
	for i := range 20 {
		e.Send(t, kafka.Message{Topic: "nodes", Value: fmt.Appendf(nil, `{"id":"node%d"}`, i)})
		want = append(want, fmt.Sprintf("1 node%d> ", i))
	}
	slices.Sort(want)
	if got := summary(readAll(t, e)); len(got) == 20 {
		t.Fatal("no record was in a wrong partition")
	}
	key, err := deadletter.NewKeyer(e.Topics, mapping(), kafkatest.Limits())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := deadletter.Replay(t.Context(), e.Client, e.Topics, deadletter.Filter{}, key, clock); err != nil {
		t.Fatal(err)
	}
	if got := slices.Compact(summary(readAll(t, e))); !slices.Equal(got, want) {
		t.Errorf("after the replay: %v", got)
	}
}
