package ingesting

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"giantstream/internal/retry"
	"giantstream/sink"
	"giantstream/stream/shard"
)

// What only a person can mend ends a run that is to finish; a service waits for the person.
func TestWhatNeedsAPerson(t *testing.T) {
	for _, err := range []error{
		fmt.Errorf("open: %w", shard.ErrDiskFull), &os.PathError{Err: syscall.EACCES},
		&os.PathError{Err: syscall.EROFS},
		&sink.Error{Op: "put", Err: &os.PathError{Err: syscall.ENOSPC}},
	} {
		if !needsPerson(err) || retry.Final(err) {
			t.Errorf("%v: a run that is to finish goes on, or a service ends", err)
		}
	}
}

// What heals by itself may come again, but not at once and for ever.
func TestStreakEnds(t *testing.T) {
	damaged, other := fmt.Errorf("x: %w", shard.ErrStateDamaged), errors.New("broker away")
	var s streak
	for range 100 {
		if s.tooMany(damaged, 2*streakTime) || s.tooMany(damaged, time.Second) || s.tooMany(other, 0) {
			t.Fatal("ended although it came to work between")
		}
	}
	s = streak{}
	for n := 1; ; n++ {
		if s.tooMany(damaged, time.Second) {
			if n != streakMax {
				t.Errorf("ended after %d, want %d", n, streakMax)
			}
			return
		}
		if n > streakMax {
			t.Fatal("does not end")
		}
	}
}
