package retry_test

import (
	"testing"
	"time"

	"giantstream/internal/retry"
)

// TestOutage: twelve users that fail five times each are one line, and one when all are well again.
func TestOutage(t *testing.T) {
	var o retry.Outage
	at := time.Unix(1000, 0)
	users := []string{"a", "b", "c"}
	lines := 0
	for range 20 {
		for _, u := range users {
			if o.Failed(u, at) {
				lines++
			}
		}
		at = at.Add(time.Second)
	}
	if lines != 1 {
		t.Errorf("%d lines, want 1", lines)
	}
	if !o.Failed("a", at.Add(time.Minute)) || o.Failed("b", at.Add(time.Minute)) {
		t.Error("an outage that lasts is one line a minute")
	}
	for i, u := range users {
		lasted, over := o.EndFailure(u, at)
		if over != (i == len(users)-1) || over && lasted != 20*time.Second {
			t.Errorf("%s: %v after %v", u, over, lasted)
		}
		if _, again := o.EndFailure(u, at); again {
			t.Errorf("%s is over twice", u)
		}
	}
	if !o.Failed("a", at) {
		t.Error("the next outage is not logged")
	}
}
