package deadletter

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"giantstream/ingest/decode"
)

// TestLog: the first letter of a kind is a line at once, those of the next minute are one line, and no
// line has content of a record.
func TestLog(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1000, 0)
	l := NewLog(slog.New(slog.NewTextHandler(&out, nil)), func() time.Time { return now })
	letter := func(code decode.Code, offset int64) Letter {
		return Letter{Origin: Origin{Topic: "nodes", Offset: offset}, Code: code, Message: "secret",
			Key: []byte("secret"), Value: []byte("secret")}
	}
	lines := func(want ...string) {
		t.Helper()
		got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		out.Reset()
		if len(want) == 0 && got[0] == "" {
			return
		}
		if len(got) != len(want) {
			t.Fatalf("%d lines, want %d: %q", len(got), len(want), got)
		}
		for i := range want {
			if !strings.Contains(got[i], want[i]) || strings.Contains(got[i], "secret") {
				t.Errorf("%s, want %s", got[i], want[i])
			}
		}
	}
	l.Add(letter(decode.BadJSON, 3), letter(decode.BadJSON, 4))
	lines("code=bad_json records=2 example=nodes/0/3")
	for i := range int64(1000) {
		l.Add(letter(decode.BadJSON, 5+i))
	}
	lines()
	l.Add(letter(decode.MissingID, 7))
	lines("code=missing_id records=1 example=nodes/0/7")
	now = now.Add(time.Minute)
	l.Add()
	lines("code=bad_json records=1000 example=nodes/0/5")
	l.Add(letter(decode.BadJSON, 2000))
	l.Close()
	lines("code=bad_json records=1 example=nodes/0/2000")
}
