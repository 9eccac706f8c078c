package ingest_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"
	"giantstream/ingest/internal/kafkatest"
)

// A letter that is dismissed is closed: it is neither listed nor replayed, and keeps its reason. Those that the filter
// leaves out stay open, and so does a letter that is written later.
func TestDismissedLettersAreClosed(t *testing.T) {
	e := kafkatest.Start(t, 1)
	e.Send(t, kafka.Message{Topic: "nodes", Key: []byte("a"), Value: []byte(`{"id":"a","text":{}}`)},
		kafka.Message{Topic: "edges", Key: []byte("a"), Value: []byte(`{"src":"a","dst":"a"}`)},
		kafka.Message{Topic: "dead-letters", Value: []byte("hello")})
	readAll(t, e)
	dismiss := func(f deadletter.Filter, reason string) int {
		t.Helper()
		n, err := deadletter.Dismiss(t.Context(), e.Client, e.Topics.DeadLetters, f, reason, clock)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	values := func(f deadletter.Filter) []string { return slices.Sorted(maps.Keys(list(t, e, f))) }
	_, err := deadletter.Dismiss(t.Context(), e.Client, e.Topics.DeadLetters, deadletter.Filter{}, " ", clock)
	if err == nil {
		t.Error("dismissed without a reason")
	}
	if n := dismiss(deadletter.Filter{Before: now.Add(-time.Hour)}, "old") +
		dismiss(deadletter.Filter{Code: decode.BadJSON}, "none"); n != 0 {
		t.Errorf("%d letters that the filters leave out are dismissed", n)
	}
	loops := deadletter.Filter{Code: decode.SelfLoop, Before: now.Add(time.Hour)}
	if n := dismiss(loops, "they link to themselves"); n != 1 {
		t.Errorf("%d letters dismissed, want 1", n)
	}
	if n := dismiss(deadletter.Filter{Code: decode.Foreign}, "another program's"); n != 1 {
		t.Errorf("%d foreign records dismissed, want 1", n)
	}
	if open := values(deadletter.Filter{}); !slices.Equal(open, []string{`{"id":"a","text":{}}`}) {
		t.Errorf("open: %q", open)
	}
	closed := list(t, e, deadletter.Filter{Dismissed: true})
	l := closed[`{"src":"a","dst":"a"}`]
	if len(closed) != 2 || l.Reason != "they link to themselves" || l.Dismissed.IsZero() {
		t.Errorf("dismissed: %+v", closed)
	}
	if all := values(deadletter.Filter{All: true}); len(all) != 3 {
		t.Errorf("all: %q", all)
	}
	done, err := deadletter.Replay(t.Context(), e.Client, e.Topics, deadletter.Filter{}, nil, clock)
	if err != nil || done != (deadletter.Replayed{Sent: 1}) {
		t.Errorf("replay: %+v, %v", done, err)
	}
	if n := dismiss(deadletter.Filter{Code: decode.SelfLoop}, "again"); n != 0 {
		t.Errorf("%d letters dismissed twice", n)
	}
	e.Send(t, kafka.Message{Topic: "edges", Key: []byte("a"), Value: []byte(`{"src":"a","dst":"a","x":1}`)})
	readAll(t, e)
	open := values(deadletter.Filter{Code: decode.SelfLoop})
	if !slices.Equal(open, []string{`{"src":"a","dst":"a","x":1}`}) {
		t.Errorf("open later: %q", open)
	}
}
