// Package race says whether a test runs under the race detector, for those that need not.
package race

import "testing"

// SkipComputing skips a test under the race detector. It is for tests whose time is arithmetic, ten times as long
// there, in goroutines that shorter tests of the same package run as well.
func SkipComputing(t *testing.T) {
	t.Helper()
	if Enabled {
		t.Skip("computes for long, in goroutines that other tests run under the race detector")
	}
}
