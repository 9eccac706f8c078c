package operate

import (
	"strings"
	"testing"

	"giantstream/stream/verify"
)

// A compacted topic that agrees with the rows is not worth a word; one that does not may be why.
func TestDifferencesOfCompactedTopics(t *testing.T) {
	for total, want := range []bool{false, true} {
		var out strings.Builder
		printDifferences(&out, &verify.Differences{Topics: []string{"nodes", "edges"}, Total: total,
			Compacted: []string{"nodes"}})
		if got := strings.Contains(out.String(), "nodes is compacted"); got != want {
			t.Errorf("%d differences:\n%s", total, out.String())
		}
	}
}
