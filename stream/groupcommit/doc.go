// Package groupcommit commits the windows of all shards of a process with one row object and one manifest.
//
// A Committer is a session: it has a log of group manifests in the store, each with the next manifest of every shard
// that is delegated to the session (package commitlog, "Group commit"). The shards of the process share it:
//
//	member := committer.Join(shard)             // an opening of the shard
//	member.Opened(since)                        // its window has its first record
//	member.Due(now)                             // the windows of the process end together
//	ticket, err := member.Begin(ctx, head)      // takes part in the next group manifest
//	m, err := ticket.Commit(ctx, manifest, rows)
//
// Begin takes the shard over if it is not delegated to the session: it seals the session that has the shard, and
// creates the delegation. A group manifest waits for those whose windows end at the same time, for a moment.
//
// A shard that the process gives up in good order is released: the next group manifest leaves it out, and whoever takes
// it over has no need to seal the session.
//
// If another worker seals the session, because it has taken over a shard of it, Commit returns ErrSealed. The shards go
// on in another session: each begins again, and finds out whether it is the one that was taken.
package groupcommit
