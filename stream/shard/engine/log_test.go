package engine

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// An engine that fails a thousand times a second says so every ten.
func TestEngineErrorsAreNotRepeated(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	l := &logger{log: slog.New(slog.NewTextHandler(&out, nil)), now: func() time.Time { return now }}
	for range 25_000 {
		now = now.Add(time.Millisecond)
		l.Errorf("no space for %s", "000012.sst")
	}
	if got := strings.Count(out.String(), "no space for 000012.sst"); got != 3 {
		t.Errorf("%d lines in 25 s, want 3:\n%s", got, out.String())
	}
	if !strings.Contains(out.String(), "errors_since_the_last_one=9999") {
		t.Errorf("the number of errors left out is missing:\n%s", out.String())
	}
}
