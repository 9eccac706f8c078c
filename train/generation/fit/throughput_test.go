package fit

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/train/objectives/trainer"
)

// noted is a Progress that keeps what it is told to show.
type noted struct{ words []string }

func (*noted) Stage(string, int64) {}
func (*noted) Add(int64)           {}
func (n *noted) Note(words string) { n.words = append(n.words, words) }

// A run that was resumed after step 100 of 400 takes a step and 50 tokens every half second.
func TestThroughputSaysTokensAndTimeLeft(t *testing.T) {
	var out bytes.Buffer
	var shown noted
	var tokens int64
	now := time.Unix(1000, 0)
	p := &throughput{
		now: func() time.Time { return now }, log: slog.New(slog.NewTextHandler(&out, nil)),
		progress: &shown, tokens: func() int64 { return tokens },
	}
	for step := int64(120); step <= 400; step += 70 {
		p.point(trainer.Point{Step: step, Loss: 2}, 400)
		now, tokens = now.Add(35*time.Second), tokens+3500
	}
	if want := []string{"100 tokens/s, 1m45s left", "100 tokens/s, 1m10s left", "100 tokens/s, 35s left",
		"100 tokens/s, 0s left"}; !slices.Equal(shown.words, want) {
		t.Errorf("shown %q, want %q", shown.words, want)
	}
	// Every point is a line for debugging, and one a minute is for everyone.
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0],
		"step=260 of=400 level=0 loss=2 tokens_per_second=100 seconds_left=70") {
		t.Errorf("log %q", lines)
	}
}
