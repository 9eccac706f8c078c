package sink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// Swap writes data over the object, if that holds exactly old, or is missing and old is nil; else the error is
// ErrChanged. On a store without compare-and-swap, what others write between two calls is not noticed.
func Swap(ctx context.Context, store Store, key string, old, data []byte) error {
	swap, ok := store.(Replacer)
	var err error
	switch {
	case old == nil:
		if err = store.Create(ctx, key, data); errors.Is(err, ErrExists) {
			return fmt.Errorf("%w: %w", ErrChanged, err)
		}
		return err
	case ok:
		if err = swap.Replace(ctx, key, old, data); !errors.Is(err, ErrUnsupported) {
			if errors.Is(err, ErrNotFound) {
				return fmt.Errorf("%w: %w", ErrChanged, err)
			}
			return err
		}
	}
	now, err := ReadAll(ctx, store, key)
	if err != nil {
		return err
	}
	if done, err := CompareStored(key, now, old, data); done || err != nil {
		return err
	}
	return PutBytes(ctx, store, key, data)
}
