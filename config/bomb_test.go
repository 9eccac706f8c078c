package config_test

import (
	"bytes"
	"testing"

	"giantstream/config"
	"giantstream/internal/peak"
)

// 200,000 nested brackets once took over 14 GB.
func TestNestedBracketsFitInMemory(t *testing.T) {
	mib := peak.Measure(t, func() []byte {
		return append(bytes.Repeat([]byte("["), 200_000), bytes.Repeat([]byte("]"), 200_000)...)
	}, func(data []byte) {
		// What is larger than a configuration may be is refused for that alone.
		for _, data := range [][]byte{data, data[100_000:300_000]} {
			if _, err := config.Parse(data, env); err == nil {
				t.Errorf("%d bytes were accepted", len(data))
			}
		}
	})
	if mib > 200 {
		t.Errorf("%d MiB resident, want 200 at most", mib)
	}
}
