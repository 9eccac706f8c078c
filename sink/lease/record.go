package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"giantstream/internal/seal"
	"giantstream/sink"
)

// recordFormat is the version of a lease object's JSON that is written. Readers know every version from 1 to
// this one, and refuse others. Version 2 added the checksum.
const recordFormat = 2

// Record is a lease object, lease/<name>/<number, 20 digits>.json. Format page:
// docs/format/lease.md.
type Record struct {
	Format int   `json:"format"`
	Number int64 `json:"number"` // as in the key
	// Holder names the process for people. Session identifies this Lease uniquely.
	Holder  string `json:"holder"`
	Session string `json:"session"`
	// Process is what Options.Ended recognises; it may be "".
	Process string `json:"process,omitempty"`
	// TTLMillis is how long the object may stay unchanged before the lease may be taken from its
	// holder.
	TTLMillis int64 `json:"ttl_ms"`
	// Renewals is a counter, so that each renewal changes the object.
	Renewals int64 `json:"renewals"`
	Released bool  `json:"released"`
	// Acquired and Renewed are by the holder's clock, for people only.
	Acquired time.Time `json:"acquired"`
	Renewed  time.Time `json:"renewed"`
	// Damaged is why the object cannot be read, "" if it can. Of the other fields, Number and TTLMillis are
	// known then.
	Damaged string `json:"damaged,omitempty"`
}

// errDamaged: the object is no lease.
var errDamaged = errors.New("lease object is damaged")

func prefix(name string) string { return "lease/" + name + "/" }

func key(name string, number int64) string {
	return fmt.Sprintf("%s%020d.json", prefix(name), number)
}

// placeOf is what the object of a number is sealed for.
func placeOf(s sink.Store, name string, number int64) seal.Place {
	return sink.PlaceOf(s, key(name, number))
}

// numberOf is the inverse of key.
func numberOf(name, k string) (n int64, ok bool) {
	digits := strings.TrimSuffix(strings.TrimPrefix(k, prefix(name)), ".json")
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil && n > 0 && key(name, n) == k
}

func (r *Record) encode(at seal.Place) ([]byte, error) {
	data, err := seal.JSON(r, at)
	if err != nil {
		return nil, fmt.Errorf("encode lease: %w", err)
	}
	return data, nil
}

// decode reads the object of a number; errDamaged if it is not what a holder has written in this place.
func decode(data []byte, at seal.Place, number int64) (*Record, error) {
	body, sealed, err := seal.Open(data, at)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	var r Record
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("%w: it does not parse: %w", errDamaged, err)
	}
	if sealed && r.Format > recordFormat {
		return nil, fmt.Errorf("lease has format %d, this version reads 1 to %d: it was written by another release",
			r.Format, recordFormat)
	}
	if r.Format != 1 && !sealed {
		return nil, fmt.Errorf("%w: format %d without a checksum", errDamaged, r.Format)
	}
	if r.Number != number || r.TTLMillis < 1 || r.TTLMillis > maxTTL.Milliseconds() || r.Session == "" {
		return nil, fmt.Errorf("%w: it has number %d, session %q and a time to live of %d ms", errDamaged, r.Number,
			r.Session, r.TTLMillis)
	}
	return &r, nil
}

// Newest returns the record of the lease's highest number, nil if the lease was never held. The
// lease may be released, its holder may be gone, and its object damaged.
func Newest(ctx context.Context, store sink.Store, name string) (*Record, error) {
	for {
		numbers, err := list(ctx, store, name, 0)
		if err != nil || len(numbers) == 0 {
			return nil, err
		}
		r, _, err := read(ctx, store, name, numbers[len(numbers)-1])
		if err != nil || r != nil {
			return r, err
		}
	}
}

// list returns the numbers after the given one, ascending. Other objects below the lease's prefix are none of
// its business.
func list(ctx context.Context, store sink.Store, name string, after int64) (numbers []int64, err error) {
	for info, err := range store.List(ctx, prefix(name), key(name, after)) {
		if err != nil {
			return nil, fmt.Errorf("look at lease %s: %w", name, err)
		}
		if n, ok := numberOf(name, info.Key); ok {
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}
