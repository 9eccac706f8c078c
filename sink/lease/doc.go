// Package lease gives a right (to build the next generation, say) to one
// holder at a time, by objects in the store and nothing else.
//
//	l := lease.New(lease.Options{Store: store, Name: "refresh", Holder: "worker-2"})
//	held, err := l.Acquire(ctx)       // ErrHeld: another process has it; ask again later
//	ctx, release := held.Keep(ctx)    // renewed in the background; ctx ends when it is lost
//	defer release()
//	build(ctx, held.Store())          // every write asks first whether the lease is still ours
//
// # Numbers
//
// Each holding of the lease has a number, and its own object
// lease/<name>/<number>.json. The highest number in the store is the holder's:
// a fencing number. A number is taken with Store.Create, so that of several who
// try exactly one gets it, and only
//
//   - when no object is there, or
//   - the newest one says that it was released, or
//   - its holder is known to have ended (Options.Ended), or
//   - it has not changed for as long as its holder promised (TTL), measured on
//     one's own clock since one has first seen it as it is. The times in
//     the object are for people; no clock is compared with another's.
//
// The holder renews by replacing its own object, which nobody else writes. It
// learns that it has lost by finding a higher number, never by its clock: a holder
// that was asleep for an hour is still the holder if nobody came.
//
// The object of the highest number is never deleted, lower ones are, by whoever
// has taken a higher one. A Create that comes late can therefore find a number free again
// that was taken and removed long ago; so who has created a number looks
// once more whether it is the highest before believing that it holds the lease.
//
// # What a zombie can do
//
// A holder that is frozen between asking (Held.Check) and writing, and thawed after
// another has taken over, completes that one write; the next asks again and fails with
// ErrLost. No store without compare-and-swap can do better, so what is written
// under a lease must bear one late write. Those of a generation do: its artifacts
// are a function of the cut and settings in its document, which is created once, so
// a late artifact is the one that is there already. A late document is either
// "ready", as the successor's, or, after the commands fit and train alone, "building":
// then the next refresh finds all artifacts and marks it ready again.
package lease
