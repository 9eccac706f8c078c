// Package trace checks what happens in a store against the specification. A Recorder sees every
// change of an object in the order in which the changes take effect, and a Checker says which of
// them the protocol does not allow. It reads objects by their format pages (docs/format), not with
// the code that writes them.
//
// The rules, where docs/PROTOCOL.md states them, and the model in docs/spec that checks them for
// all interleavings:
//
//	file            rules                                           section               model
//	commit.go       ManifestsNeverChange, NoGap, NamedObjectsExist, Commit, Fencing,      commit.pml
//	                OffsetsNeverDecrease, OnlyOrphansGo             Removal of orphans
//	commit.go       BoundaryAscends, HeadIsFound, NothingLost       Removal of manifests  boundary.pml
//	checkpoints.go  KeptAreWhole, SeqAscends, NextNumber            Checkpoints           checkpoints.pml
//	compaction.go   BlocksNeverChange, BlockIsComplete,             Compaction            compaction.pml
//	                OnlySupersededGo
//	cursor.go       CursorIsCovered, CursorReturns                  Publication           publication.pml
//	lease.go        HighestStays, OwnRecord                         Fencing               lease.pml
//
// Whose request it was cannot be seen from the store. So the checker does not know zombies, and
// judges each change by what the store held at that moment.
package trace
