// Package race says whether a test runs under the race detector, for those that need not.
package race

import "testing"

// SkipComputing skips a test under the race detector. It is for tests that compute, ten times as long there, in one
// goroutine, or in goroutines that shorter tests of the same package run as well.
func SkipComputing(t *testing.T) {
	t.Helper()
	if Enabled {
		t.Skip("computes for long; other tests run its goroutines under the race detector")
	}
}
