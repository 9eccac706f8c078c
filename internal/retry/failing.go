package retry

import (
	"sync/atomic"
	"time"
)

// Failing knows since when something fails that is tried again and again. It is safe for concurrent use; the zero value
// is ready.
type Failing struct{ first atomic.Pointer[firstFailure] }

type firstFailure struct {
	at  time.Time
	err error
}

// Note notes an outcome, nil for a success.
func (f *Failing) Note(err error, now time.Time) {
	if err == nil {
		f.first.Store(nil)
	} else {
		f.first.CompareAndSwap(nil, &firstFailure{now, err})
	}
}

// First returns the first of the failures since the last success, and when it was; nil if there is none.
func (f *Failing) First() (at time.Time, err error) {
	if first := f.first.Load(); first != nil {
		return first.at, first.err
	}
	return time.Time{}, nil
}
