package shard

import (
	"errors"
	"maps"
	"time"

	"giantstream/stream/commitlog"
	"giantstream/stream/shard/engine"
)

// Errors that callers of a Shard test. After any error a Shard does nothing more. Close it and open
// it again; it resumes from the commit log.
var (
	// ErrFenced: another worker has committed to this shard and owns it now. Nothing is lost, and
	// this worker must not write again.
	ErrFenced = errors.New("shard is owned by another worker")
	// ErrLogIncomplete: the input topics no longer hold the records that the state needs.
	ErrLogIncomplete = errors.New("input topics do not hold what the commit log covers")
	// ErrStateDamaged: the files of the local state are not what the engine wrote. The state has been
	// set aside, and the next opening builds it again from a checkpoint or from the topics.
	ErrStateDamaged = engine.ErrDamaged
	// ErrDiskFull: there is not enough space for the local state. The state is whole.
	ErrDiskFull = engine.ErrDiskFull
	// ErrStateInUse: another process, or another shard of this one, has the state directory open.
	ErrStateInUse = engine.ErrInUse
)

// Shard is the worker of one partition of the graph. It applies mutations to the state, gathers
// their changes in windows, and commits each window to the object store exactly once. It is not
// safe for concurrent use.
type Shard struct {
	opts  Options
	state *state
	// head is the newest manifest, nil before the first.
	head *commitlog.Manifest
	// covered holds the head's offsets at the time of opening. Records below them are in committed
	// rows already.
	covered map[string]int64
	// position holds the offsets up to which this Shard itself has consumed.
	position map[string]int64
	// resume holds the offsets up to which every topic must be consumed before anything may be
	// committed: what the head covers, and what the state holds.
	resume map[string]int64
	window openWindow
	// inputs are the topics that are read, as the next manifest names them.
	inputs map[string]commitlog.Input
	// unsaved: a manifest is due, even if it has no rows and no new offsets, because of what it
	// says about inputs or losses.
	unsaved bool
	// committed is when Run has last committed, or began; committing is how long that commit took.
	committed  time.Time
	committing time.Duration
	// swept is when expired orders were last dropped from the state, and sweeping how long it took.
	swept    time.Time
	sweeping time.Duration
	loaded   time.Time // when a load had caught up; zero before
	opened   bool      // the inputs were compared with those of the head
	checked  time.Time // when checkInputs was last called
	session  string    // unique to this opening
	objects  int64     // objects written in this session
	failed   error     // what ended this Shard

	checkpoints *checkpointer
}

func (s *Shard) headSeq() int64 {
	if s.head == nil {
		return 0
	}
	return s.head.Seq
}

// Next returns, for each topic, the offset at which the feed must start. A missing topic starts at
// its first offset.
func (s *Shard) Next() map[string]int64 { return maps.Clone(s.position) }

// below reports whether some topic has yet to be consumed up to the offsets given.
func (s *Shard) below(offsets map[string]int64) bool {
	for topic, offset := range offsets {
		if s.position[topic] < offset {
			return true
		}
	}
	return false
}

func (s *Shard) moves(next map[string]int64) bool {
	for topic, offset := range next {
		if have, ok := s.position[topic]; !ok || offset > have {
			return true
		}
	}
	return false
}
