package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// logger passes on what the storage engine logs: errors as errors, all else for debugging.
type logger struct {
	log *slog.Logger
	now func() time.Time
	// fatal ends the use of the engine. It does not return.
	fatal func(message string)

	mu      sync.Mutex
	last    time.Time // when the last error was passed on
	skipped int       // errors since then
}

func (l *logger) Infof(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug(fmt.Sprintf(format, args...))
	}
}

// errorEvery is how often an error is passed on: on a full disk the engine retries at once, a
// thousand times a second.
const errorEvery = 10 * time.Second

func (l *logger) Errorf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if !l.last.IsZero() && now.Sub(l.last) < errorEvery {
		l.skipped++
		return
	}
	log := l.log
	if l.skipped > 0 {
		log = log.With("errors_since_the_last_one", l.skipped)
	}
	log.Error(fmt.Sprintf(format, args...))
	l.last, l.skipped = now, 0
}

// Fatalf is called when the engine cannot continue, and must not return.
func (l *logger) Fatalf(format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	l.log.Error(msg)
	l.fatal(msg)
	panic(msg) // not reached: fatal does not return
}
