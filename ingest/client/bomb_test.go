package client

import (
	"testing"

	"giantstream/internal/peak"
)

// A record of 800 MB zeros, 110 KB in its batch, once took 1.7 GB.
func TestAHugeRecordFitsInMemory(t *testing.T) {
	const size = 800 << 20
	mib := peak.Measure(t, func() []byte { return zeros(t, size) }, func(batch []byte) {
		f, err := answerOf(0, 3, batch).read(t.Context())
		if err != nil || len(f.Records) != 2 || len(f.TooLarge) != 1 || f.TooLarge[0].Size != size {
			t.Errorf("%d records, %d too large, %v", len(f.Records), len(f.TooLarge), err)
		}
	})
	if mib > 200 {
		t.Errorf("%d MiB resident, want 200 at most", mib)
	}
}
