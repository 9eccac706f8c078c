package lease

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"giantstream/sink"
)

// Format is the version of a lease object's JSON; readers refuse others.
const Format = 1

// Record is a lease object, lease/<name>/<number, 20 digits>.json.
// Format page: docs/format/lease.md.
type Record struct {
	Format int   `json:"format"`
	Number int64 `json:"number"` // as in the key
	// Holder names the process for people, Session this use of it for sure.
	Holder  string `json:"holder"`
	Session string `json:"session"`
	// Process is what Options.Ended recognises, "" where there is no such thing.
	Process string `json:"process,omitempty"`
	// TTLMillis is how long the object may stay as it is before the lease
	// may be taken from its holder.
	TTLMillis int64 `json:"ttl_ms"`
	// Renewals counts, so that each renewal changes the object.
	Renewals int64 `json:"renewals"`
	Released bool  `json:"released"`
	// Acquired and Renewed are by the holder's clock, for people.
	Acquired time.Time `json:"acquired"`
	Renewed  time.Time `json:"renewed"`
}

func prefix(name string) string { return "lease/" + name + "/" }

func key(name string, number int64) string {
	return fmt.Sprintf("%s%020d.json", prefix(name), number)
}

// numberOf is the inverse of key.
func numberOf(name, k string) (int64, error) {
	digits := strings.TrimSuffix(strings.TrimPrefix(k, prefix(name)), ".json")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 1 || key(name, n) != k {
		return 0, fmt.Errorf("%q is no lease object; remove it", k)
	}
	return n, nil
}

func (r *Record) encode() ([]byte, error) {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode lease: %w", err)
	}
	return append(data, '\n'), nil
}

// Decode reads a lease object.
func Decode(data []byte) (*Record, error) {
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("lease does not parse: %w", err)
	}
	if r.Format != Format {
		return nil, fmt.Errorf("lease has format %d, this version reads %d: it was written by another release", r.Format, Format)
	}
	if r.Number < 1 || r.TTLMillis < 1 || r.TTLMillis > maxTTL.Milliseconds() || r.Session == "" {
		return nil, fmt.Errorf("lease has number %d, session %q and a time to live of %d ms", r.Number, r.Session, r.TTLMillis)
	}
	return &r, nil
}

// Newest returns the record of the lease's highest number, nil if nobody has
// ever held it. It may be released, and its holder may be gone.
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

// list returns the numbers after the given one, ascending.
func list(ctx context.Context, store sink.Store, name string, after int64) (numbers []int64, err error) {
	for info, err := range store.List(ctx, prefix(name), key(name, after)) {
		if err != nil {
			return nil, fmt.Errorf("look at lease %s: %w", name, err)
		}
		n, err := numberOf(name, info.Key)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}
