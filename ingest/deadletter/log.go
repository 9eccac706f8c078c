package deadletter

import (
	"log/slog"
	"sync"
	"time"

	"giantstream/ingest/decode"
)

// logInterval is how often letters of one topic and code are worth a line.
const logInterval = time.Minute

// Log writes a line for the letters of each topic and code: at the first one, and then one a minute for
// those that have come since. Lines name an example's origin and no content. It is safe for concurrent
// use.
type Log struct {
	log   *slog.Logger
	clock func() time.Time

	mu    sync.Mutex
	kinds map[letterKind]*unlogged
}

type letterKind struct {
	topic string
	code  decode.Code
}

type unlogged struct {
	letters int64
	example Origin
	logged  time.Time
}

// NewLog returns a log of letters.
func NewLog(log *slog.Logger, clock func() time.Time) *Log {
	return &Log{log: log, clock: clock, kinds: map[letterKind]*unlogged{}}
}

// Add takes letters that were written, or none, and logs what is due.
func (l *Log) Add(letters ...Letter) { l.add(letters, false) }

// Close logs what was not logged yet.
func (l *Log) Close() { l.add(nil, true) }

func (l *Log) add(letters []Letter, all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range letters {
		kind := letterKind{letters[i].Topic, letters[i].Code}
		u := l.kinds[kind]
		if u == nil {
			u = &unlogged{}
			l.kinds[kind] = u
		}
		if u.letters == 0 {
			u.example = letters[i].Origin
		}
		u.letters++
	}
	now := l.clock()
	for kind, u := range l.kinds {
		if u.letters == 0 || !all && now.Sub(u.logged) < logInterval {
			continue
		}
		l.log.Warn("records became dead letters; see 'giantstream dlq list'", "topic", kind.topic, "code", kind.code,
			"records", u.letters, "example", u.example.String(), "reason", kind.code.Explain())
		u.letters, u.logged = 0, now
	}
}
