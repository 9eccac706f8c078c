// Package servicetest is for tests of the service and its parts.
package servicetest

import (
	"context"
	"testing"
	"time"
)

// Eventually fails the test if a condition does not hold within a minute.
func Eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("after a minute, still not: %s", what)
		case <-tick.C:
		}
	}
}
