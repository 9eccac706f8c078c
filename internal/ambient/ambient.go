// Package ambient has the defaults of options that stand for the process and the machine: the clock, the log, random
// numbers, and where the progress of long work is shown. Tests and simulations pass their own.
package ambient

import (
	"crypto/rand"
	"io"
	"log/slog"
	"time"
)

// Clock returns clock, time.Now for nil.
func Clock(clock func() time.Time) func() time.Time {
	if clock == nil {
		return time.Now
	}
	return clock
}

// Log returns log, one that discards everything for nil.
func Log(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}

// Rand returns random, crypto/rand for nil.
func Rand(random io.Reader) io.Reader {
	if random == nil {
		return rand.Reader
	}
	return random
}
