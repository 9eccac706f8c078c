package ingesting

import "testing"

// With every look, each partition has more records, of which the last ones are not committed.
func TestWhatIsSentLaterIsNotWaitedFor(t *testing.T) {
	slow := source{"edges", 1}
	b := backlog{parts: map[source]part{{"nodes", 0}: {open: 3}, slow: {end: 1000, open: 1000}}}
	var a awaited
	look := func() int64 {
		b.open = 0
		for s, p := range b.parts {
			b.parts[s] = part{p.end + 10, p.open}
			b.open += p.open
		}
		return a.uncommitted(b)
	}
	for n := range 20 {
		if look() == 0 {
			t.Fatalf("look %d: done while a partition is not read", n)
		}
	}
	b.parts[slow] = part{b.parts[slow].end, 5}
	looks := 1
	for look() > 0 {
		if looks++; looks > 10 {
			t.Fatal("it waits although all that was sent before is committed")
		}
	}
	if looks < roundsToCommit {
		t.Errorf("after %d looks: what is copied, or mirrored, may not be committed", looks)
	}
	a = awaited{}
	if look() == 0 {
		t.Error("of another wait, the looks of before count")
	}
	for s, p := range b.parts {
		b.parts[s] = part{p.end, 0}
	}
	if look() > 0 {
		t.Error("an empty backlog is waited for")
	}
}

// What is not sent, but pending, is waited for until it is committed.
func TestWhatIsPendingIsWaitedFor(t *testing.T) {
	busy, pending := source{"nodes", 0}, source{acceptedLosses, 0}
	b := backlog{parts: map[source]part{busy: {end: 7, open: 1}, pending: {2, 2}}, open: 3}
	var a awaited
	for n := range 10 {
		if b.parts[busy] = (part{int64(8 + n), 1}); a.uncommitted(b) == 0 {
			t.Fatalf("look %d: done before the losses are committed", n)
		}
	}
	b.parts[pending], b.open = part{}, 1
	for n := 0; a.uncommitted(b) > 0; n++ {
		if b.parts[busy] = (part{int64(20 + n), 1}); n > 10 {
			t.Fatal("committed, and waited for")
		}
	}
}
