package sink

import (
	"context"
	"iter"
)

// Versioned is a Store that may keep what was replaced or deleted, as a bucket with versioning does.
type Versioned interface {
	// Versions yields the versions of objects that are not current: List and Open do not give them. It yields nothing
	// where none are kept.
	Versions(ctx context.Context) iter.Seq2[Version, error]
	// OpenVersion opens one of them, or returns ErrNotFound.
	OpenVersion(ctx context.Context, v Version) (Object, error)
}

// Version is a version of an object.
type Version struct {
	Info
	ID string
}
