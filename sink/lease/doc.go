// Package lease gives a right (to build the next generation, say) to one holder at a time, by means
// of objects in the store and nothing else.
//
// New returns this process's view of a lease. Lease.Acquire takes the lease or returns ErrHeld.
// Held.Keep renews it in the background, and ends its context when the lease is lost. Writes under
// the lease go through Held.Store, which asks before each write whether the lease is still held.
//
// # Numbers
//
// Each holding of the lease has a number and an object of its own, lease/<name>/<number>.json. The
// highest number in the store is the current holder's, and serves as a fencing number. A number is
// taken with sink.Store's Create, so that exactly one of several processes gets it. A process may
// take the next number only if
//
//   - there is no object, or
//   - the newest object says that it was released, or
//   - its holder is known to have ended (Options.Ended), or
//   - it has not changed for as long as its holder promised to renew it (TTL). Each process measures
//     this on its own clock, from when it first saw the object in its present state. The times in
//     the object are for people; no process compares its clock with another's.
//
// An object that cannot be read is that of an unknown holder. Another process may take the lease over once the object
// has not changed for the default TTL; a live holder repairs it before. Its number is used up either way.
//
// The holder renews by replacing its own object, which no other process writes, and where the store can compare and
// swap (sink.Replacer) only over what it has written itself. A holder learns of its loss from a higher number, never
// from its clock: after an hour's sleep it still holds the lease if no other process came.
//
// The object of the highest number is never deleted. Lower ones are deleted by the process that has
// taken a higher number. A late Create can therefore find a number free that was taken and removed
// long ago. So a process that has created a number checks that it is the highest before it believes
// that it holds the lease.
//
// # What a zombie can do
//
// A holder that is frozen between the check and the write, and thawed after another process has taken over, completes
// that one write. The next write is checked again and fails with ErrLost. No store without compare-and-swap can do
// better, so what is written under a lease must tolerate one late write. A generation does. Its artifacts are a
// function of the cut and the settings in its document, which is created once, so a late artifact equals the one that
// is there. A late document says "ready", like the successor's, or "building", after a build that was to stop at an
// earlier stage. In the second case the next refresh finds all artifacts and marks the document ready again.
package lease
