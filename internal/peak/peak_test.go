package peak_test

import (
	"bytes"
	"testing"

	"giantstream/internal/peak"
)

// TestOfMeasuresTheOtherProcess: what the input costs is not counted, and what do holds is.
func TestOfMeasuresTheOtherProcess(t *testing.T) {
	for _, tt := range []struct {
		name            string
		input, held     int
		atLeast, atMost int64
	}{
		{"small", 300 << 20, 0, 1, 100},
		{"large", 0, 300 << 20, 300, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := peak.Measure(t, func() []byte {
				made := bytes.Repeat([]byte{1}, tt.input)
				return made[:min(len(made), 10)]
			}, func([]byte) {
				held := bytes.Repeat([]byte{1}, tt.held)
				if len(held) > 0 && held[len(held)-1] != 1 {
					t.Error("it was not held")
				}
			})
			if got < tt.atLeast || got > tt.atMost {
				t.Errorf("%d MiB, want %d to %d", got, tt.atLeast, tt.atMost)
			}
		})
	}
}
