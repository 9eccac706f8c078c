package console

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFormats(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Count(0), "0"}, {Count(999), "999"}, {Count(63666), "63,666"}, {Count(int64(-1234567)), "-1,234,567"},
		{Bytes(512), "512 B"}, {Bytes(1536), "1.5 KiB"}, {Bytes(3 << 30), "3.0 GiB"},
		{Duration(840 * time.Millisecond), "840 ms"}, {Duration(12340 * time.Millisecond), "12.3 s"},
		{Duration(245 * time.Second), "4 min 5 s"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestProgressLogsOneLinePerStageWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	p := New(&out, slog.New(slog.NewTextHandler(&out, nil)))
	p.Stage("read", 10)
	p.Add(4)
	p.Add(6)
	p.Stage("fit", 0)
	p.Done()
	p.Done()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("want 2 lines, got %q", lines)
	}
	if !strings.Contains(lines[0], "stage=read units=10") {
		t.Errorf("first line: %s", lines[0])
	}
}

func TestALogSaysThatALongStageGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := New(&out, slog.New(slog.NewTextHandler(&out, nil)))
		p.Stage("read", 10)
		p.Add(4)
		time.Sleep(2*sayStill + sayStill/2)
		p.Stage("fit", 0)
		time.Sleep(sayStill + sayStill/2)
		p.Done()
		time.Sleep(5 * sayStill)
		var said []string
		for line := range strings.Lines(out.String()) {
			_, message, _ := strings.Cut(strings.TrimSpace(line), "msg=")
			said = append(said, message)
		}
		want := []string{`"stage goes on" stage=read units=4 of=10 seconds=60`,
			`"stage goes on" stage=read units=4 of=10 seconds=120`, `"stage done" stage=read units=4 seconds=150`,
			`"stage goes on" stage=fit units=0 seconds=60`, `"stage done" stage=fit units=0 seconds=90`}
		if !slices.Equal(said, want) {
			t.Errorf("the log is %q, want %q", said, want)
		}
	})
}
