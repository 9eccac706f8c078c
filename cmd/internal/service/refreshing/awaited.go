package refreshing

import "context"

// awaited is what a generation waits for: the backlog as of when it was first asked about. What is sent later is not
// waited for, since producers may never pause.
type awaited struct {
	generation int64 // the newest one
	rounds     int   // how often all that was there was committed
	ends       map[source]int64
}

// source is a partition of a topic, or of what a group copies.
type source struct {
	of        string
	partition int
}

// roundsToCommit: a record is copied, becomes a mirror record or gets its vector, and these are committed.
const roundsToCommit = 3

// committed looks at the backlog once more, and says whether it is committed.
func (a *awaited) committed(ctx context.Context, b Backlog, newest int64) (bool, error) {
	if a.generation != newest {
		*a = awaited{generation: newest}
	}
	ends := map[source]int64{}
	all, err := b.Uncommitted(ctx, func(of string, partition int, end, open int64) {
		s := source{of, partition}
		ends[s] = end
		if open == 0 || end-open >= a.ends[s] {
			delete(a.ends, s)
		}
	})
	switch {
	case err != nil:
		return false, err
	case all == 0:
		a.rounds = roundsToCommit
	case a.ends == nil:
		a.ends = ends
	case len(a.ends) == 0:
		a.rounds, a.ends = a.rounds+1, ends
	}
	return a.rounds >= roundsToCommit, nil
}
