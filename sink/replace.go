package sink

import (
	"bytes"
	"context"
	"errors"
)

// Replacer is a Store that compares and swaps.
type Replacer interface {
	// Replace writes data over the object only if the object holds exactly old. It returns ErrChanged if the
	// object holds other bytes, ErrNotFound if there is none, and ErrUnsupported if the server turns out not
	// to know conditions of this kind. If the object holds exactly data already, Replace succeeds: a retry
	// has met its own first attempt. After another error the object holds old or data.
	Replace(ctx context.Context, key string, old, data []byte) error
}

// ErrUnsupported: the server behind the store has no compare-and-swap.
var ErrUnsupported = errors.New("object store has no compare-and-swap")

// CompareStored decides what Replace should do about what is stored: nil to write, ErrChanged, or done if there
// is nothing to write. Implementations of Replacer call it, and see to it that nothing changes meanwhile.
func CompareStored(key string, stored, old, data []byte) (done bool, err error) {
	switch {
	case bytes.Equal(stored, data):
		return true, nil
	case !bytes.Equal(stored, old):
		return false, &Error{Op: "replace", Key: key, Err: ErrChanged}
	}
	return false, nil
}
