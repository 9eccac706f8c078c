package sim

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// trace is what happened in a simulation: every call with its time and outcome. Its sum does not depend on the order in
// which calls of the same time are noted.
type trace struct {
	start time.Time
	mu    sync.Mutex
	sum   uint64
	n     int
	last  []string // the last lines, for the report of a failure
	all   func(line string)
}

const lastLines = 60

func (t *trace) add(actor, op, key, n string, outcome int) {
	t.note(actor, op+" "+key+" #"+n+" "+outcomes[outcome+1])
}

var outcomes = [...]string{"done, reply lost", "", "refused", "dropped"}

// note adds an event.
func (t *trace) note(actor, what string) {
	at := time.Since(t.start)
	h := dice(0).hash(strconv.FormatInt(int64(at), 10), actor, what)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum += h
	t.n++
	line := fmt.Sprintf("%12.6fs %-28s %s", at.Seconds(), actor, what)
	if t.all != nil {
		t.all(line)
	}
	if t.last = append(t.last, line); len(t.last) > 2*lastLines {
		t.last = append(t.last[:0], t.last[lastLines:]...)
	}
}

// tail returns the last lines.
func (t *trace) tail() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.last[max(0, len(t.last)-lastLines):], "\n")
}

// Sum identifies the trace.
func (t *trace) Sum() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("%016x over %d events", t.sum, t.n)
}
