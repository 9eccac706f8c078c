package ingesting

import (
	"errors"
	"slices"
	"syscall"
	"time"

	"giantstream/stream/shard"
)

// needsPerson reports whether err needs a person who may act while the process waits: a service does,
// and is not ready meanwhile. A process that is to finish ends instead.
func needsPerson(err error) bool {
	return slices.ContainsFunc([]error{shard.ErrDiskFull, syscall.EACCES, syscall.EPERM, syscall.EROFS,
		syscall.ENOSPC, syscall.EDQUOT}, func(target error) bool { return errors.Is(err, target) })
}

// streak counts failures in a row that heal by themselves, unless they come back at once.
type streak struct {
	last  error // the sentinel
	count int
}

const (
	// streakMax is how many failures of a kind may follow one another, each within streakTime of the
	// start. With the pauses between, these are a few minutes.
	streakMax  = 8
	streakTime = time.Minute
)

// tooMany notes a failure after a shard ran for some time, and reports whether it is one too many.
// A state that is damaged again and again means a failing disk or memory. One that stays in use
// belongs to another pipeline.
func (s *streak) tooMany(err error, ran time.Duration) bool {
	for _, kind := range []error{shard.ErrStateDamaged, shard.ErrStateInUse} {
		if !errors.Is(err, kind) {
			continue
		}
		if !errors.Is(s.last, kind) || ran > streakTime {
			s.last, s.count = kind, 0
		}
		s.count++
		return s.count >= streakMax
	}
	s.last, s.count = nil, 0
	return false
}
