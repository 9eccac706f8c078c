package retry

import "slices"

// FinalError is a sentinel for what no repetition mends: it needs a person, or another process. Two
// with the same text are equal.
type FinalError string

func (e FinalError) Error() string { return string(e) }

// Final implements the interface that the function Final looks for.
func (FinalError) Final() bool { return true }

// Final reports whether an error, or one that it wraps, has a method Final() bool that returns true.
// Errors of one type can differ, so a Final that returns false decides nothing for the errors below
// it. Whatever else fails may succeed later.
func Final(err error) bool {
	if f, ok := err.(interface{ Final() bool }); ok && f.Final() { //nolint:errorlint // it walks the tree itself
		return true
	}
	switch e := err.(type) { //nolint:errorlint // likewise
	case interface{ Unwrap() error }:
		return Final(e.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), Final)
	}
	return false
}
