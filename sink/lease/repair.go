package lease

import (
	"context"
	"fmt"
	"time"

	"giantstream/sink"
)

// Repair replaces the damaged object of the highest number by one that is released, so that the next process
// takes the next number at once. It returns whether there was anything to repair. The number stays: fencing
// numbers must not be given twice. A holder that lives and has been taken for lost finds the higher number
// before its next write.
func Repair(ctx context.Context, store sink.Store, name string, now time.Time) (repaired bool, err error) {
	r, err := Newest(ctx, store, name)
	if err != nil || r == nil || r.Damaged == "" {
		return false, err
	}
	free := Record{Format: recordFormat, Number: r.Number, Holder: "giantstream verify --repair", Session: "repair",
		TTLMillis: defaultTTL.Milliseconds(), Released: true, Acquired: now.UTC(), Renewed: now.UTC()}
	data, err := free.encode(placeOf(store, name, r.Number))
	if err != nil {
		return false, err
	}
	if err := sink.PutBytes(ctx, store, key(name, r.Number), data); err != nil {
		return false, fmt.Errorf("repair lease %s: %w", name, err)
	}
	return true, nil
}
