package retry

import (
	"sync"
	"time"
)

// outageInterval is how often an outage that lasts is worth a line.
const outageInterval = time.Minute

// Outage makes one line of the log out of the failures of many users of one service, and one line when
// it is over. It is safe for concurrent use; the zero value is ready.
type Outage struct {
	mu      sync.Mutex
	failing map[string]bool
	began   time.Time
	logged  time.Time
}

// Failed notes the failure of a user at a time, and reports whether to log it: the first of an outage,
// and one a minute after that.
func (o *Outage) Failed(user string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.failing) == 0 {
		o.failing, o.began, o.logged = map[string]bool{}, now, time.Time{}
	}
	o.failing[user] = true
	if now.Sub(o.logged) < outageInterval {
		return false
	}
	o.logged = now
	return true
}

// EndFailure notes that a user has succeeded or no longer tries. over reports whether the user was the last one
// that failed; lasted is how long the outage was.
func (o *Outage) EndFailure(user string, now time.Time) (lasted time.Duration, over bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.failing[user] {
		return 0, false
	}
	delete(o.failing, user)
	return now.Sub(o.began), len(o.failing) == 0
}
