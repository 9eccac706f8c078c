package ingesting

// awaited is what was sent by the first look at the backlog. What is sent later is not waited for, since producers may
// never pause.
type awaited struct {
	rounds int // how often all that was there was committed
	ends   map[source]int64
}

// source is a partition of a topic, or of what a group copies.
type source struct {
	of        string
	partition int
}

// roundsToCommit: a record is copied, becomes a mirror record or gets its vector, and these are committed.
const roundsToCommit = 3

// uncommitted takes the next look, and returns how many records are not committed, or 0 if they were sent after the
// first one.
func (a *awaited) uncommitted(b backlog) int64 {
	for s, p := range b.parts {
		if p.open == 0 || p.end-p.open >= a.ends[s] {
			delete(a.ends, s)
		}
	}
	switch {
	case b.open == 0:
		a.rounds = roundsToCommit
	case a.ends == nil:
		a.ends = b.ends()
	case len(a.ends) == 0:
		a.rounds, a.ends = a.rounds+1, b.ends()
	}
	if a.rounds >= roundsToCommit {
		return 0
	}
	return b.open
}
