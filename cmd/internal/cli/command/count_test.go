package command_test

import (
	"testing"

	"giantstream/cmd/internal/cli/command"
)

// TestCounts: what people write is read, and what they cannot mean is refused.
func TestCounts(t *testing.T) {
	for text, want := range map[string]command.Count{"0": 0, "63666": 63_666, "250k": 250_000, "10m": 10_000_000,
		"10M": 10_000_000, "1.6b": 1_600_000_000, "1.6e9": 1_600_000_000, "1.001k": 1001, "0.000001m": 1,
		"2.3k": 2300, "111e6": 111_000_000, "1e15": 1e15} {
		var got command.Count
		if err := got.Set(text); err != nil || got != want {
			t.Errorf("%s is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "m", "-1", "1.5", "1,6e9", "1,000", "10 m", "10mm", "5GiB", "NaN", "Inf", "+Inf",
		"2e15", "1e400", "many"} {
		got := command.Count(7)
		if err := got.Set(text); err == nil || got != 7 {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}
}
