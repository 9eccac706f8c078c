package generation

import (
	"time"

	"giantstream/train"
)

// stageClock passes progress on and keeps how long each stage took.
type stageClock struct {
	next  train.Progress
	now   func() time.Time
	start time.Time
	times []StageTime
}

func newStageClock(next train.Progress, now func() time.Time) *stageClock {
	return &stageClock{next: next, now: now}
}

// Stage ends the running stage and starts the next.
func (c *stageClock) Stage(name string, total int64) {
	c.end()
	c.start = c.now()
	c.times = append(c.times, StageTime{Name: name})
	if c.next != nil {
		c.next.Stage(name, total)
	}
}

// Add reports units done in the running stage.
func (c *stageClock) Add(n int64) {
	if c.next != nil {
		c.next.Add(n)
	}
}

// Note passes words on.
func (c *stageClock) Note(words string) { train.Note(c.next, words) }

// end closes the running stage, if any.
func (c *stageClock) end() {
	if n := len(c.times); n > 0 && !c.start.IsZero() {
		c.times[n-1].Seconds = c.now().Sub(c.start).Seconds()
	}
}
