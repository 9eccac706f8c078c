package stream

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// engineLog passes the storage engine's words on: what it does is for
// debugging, what goes wrong is not.
type engineLog struct {
	log *slog.Logger
	now func() time.Time

	mu      sync.Mutex
	last    time.Time // of the newest error that was passed on
	skipped int       // since
}

func (l *engineLog) Infof(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug(fmt.Sprintf(format, args...))
	}
}

// errorEvery is how often an error is passed on: on a full disk the engine
// tries again at once, a thousand times a second.
const errorEvery = 10 * time.Second

func (l *engineLog) Errorf(format string, args ...any) {
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

// flushed ends the process when a flush has failed: the engine would try again for
// ever, and writers wait for it, while the shard could be another worker's.
func (l *engineLog) flushed(info pebble.FlushInfo) {
	if info.Err != nil && info.Err.Error() != nothingFlushed {
		l.Fatalf("flush: %v", info.Err)
	}
}

// nothingFlushed is what the engine calls a flush that had nothing to write. It
// exports no error for it; tests fail if it comes to say something else.
const nothingFlushed = "pebble: empty table"

// Fatalf is called when the engine cannot go on. It must not return. Ending
// the process is safe at any point: the next start resumes from the commit log.
func (l *engineLog) Fatalf(format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	l.log.Error(msg)
	panic("graph state cannot go on (is the disk of state_dir full?): " + msg)
}
