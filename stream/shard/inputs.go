package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"giantstream/internal/retry"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
)

// Errors about input topics. Starting the shard again does not help: a person decides.
const (
	// ErrInputReplaced: a topic is not the one that the commit log was read from.
	ErrInputReplaced = retry.FinalError("the topic is not the one that was read")
	// ErrPartitions: a topic has more or fewer partitions than there are shards.
	ErrPartitions = retry.FinalError("the partitions of the topic have changed")
)

// inputCheckEvery is how often a running shard asks whether the topics are still the same ones.
// Every commit asks as well.
const inputCheckEvery = 5 * time.Second

// openInputs compares the topics with those that the commit log was read from, and decides where
// reading starts. See docs/PROTOCOL.md, "Identity of inputs".
func (s *Shard) openInputs(ctx context.Context) error {
	s.inputs = map[string]commitlog.Input{}
	if s.head != nil {
		for topic, in := range s.head.Inputs {
			s.inputs[topic] = in
		}
		s.unsaved = len(s.unaccepted(s.head.Lost)) < len(s.head.Lost)
	}
	s.unsaved = s.unsaved || len(s.state.meta.Lost) > 0
	s.state.meta.Lost = s.unaccepted(s.state.meta.Lost)
	if s.opts.Inputs == nil {
		return nil
	}
	s.checked = s.opts.Clock()
	now, err := s.opts.Inputs.Identify(ctx)
	if err != nil {
		return err
	}
	bounds, err := s.opts.Inputs.Bounds(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, topic := range s.opts.Topics.Names() {
		errs = append(errs, s.openInput(ctx, topic, now[topic], bounds[topic]))
	}
	s.opened = true
	return errors.Join(errs...)
}

// openInput is openInputs for one topic.
func (s *Shard) openInput(ctx context.Context, topic string, now Identity, b Bounds) error {
	if err := s.checkPartitions(topic, now); err != nil {
		return err
	}
	in, known := s.inputs[topic]
	consumed := max(s.covered[topic], s.state.meta.Applied[topic])
	why, err := s.differs(ctx, topic, in, now)
	if err != nil {
		return err
	}
	if why == "" && consumed > b.End+in.Base {
		why = fmt.Sprintf("it ends at offset %d, before what was read from it", b.End)
	}
	if why != "" {
		if !s.opts.Accept.Replaced[topic] {
			return s.replaced(topic, in, why, b)
		}
		// Offsets continue where those of the old topic ended. Where records of both have the same
		// event time, the later topic wins.
		in.Base, in.Last = consumed-b.Oldest, nil
		s.unsaved = true
		s.opts.Log.Warn("a topic is not the one that was read before, and is read from its start",
			"topic", topic, "from", b.Oldest, "because", why)
	}
	in.ID, in.Partitions = cmp.Or(now.ID, in.ID), now.Partitions
	if !known {
		in.First = b.Oldest
	}
	s.inputs[topic] = in
	start, begun := s.position[topic]
	if !begun {
		start = in.First
		if !known && s.covered[topic] > b.Oldest && b.Oldest > 0 {
			s.opts.Log.Warn("the state is gone, and an older version of giantstream did not note where it began "+
				"to read: it cannot be told whether the topic has lost records since",
				"topic", topic, "oldest", b.Oldest)
		}
	}
	if oldest := b.Oldest + in.Base; start < oldest {
		s.opts.Log.Error("records were deleted before the state had them. Raise the topic's retention, "+
			"and send again what is missing", "topic", topic,
			"from", start-in.Base, "to", b.Oldest-1, "lost", oldest-start)
		s.opts.Listener.Lost(oldest - start)
		s.lose(topic, start, oldest)
		start = oldest
		// Written together with the loss, so that it is noticed once.
		s.state.meta.Applied[topic] = max(s.state.meta.Applied[topic], start)
	}
	s.position[topic] = start
	return nil
}

// lose notes offsets whose records are gone.
func (s *Shard) lose(topic string, from, to int64) {
	if s.opts.Accept.Lost[topic] {
		return
	}
	s.state.meta.Lost = commitlog.AddLost(s.state.meta.Lost, commitlog.Lost{Topic: topic, From: from, To: to,
		Offsets: to - from, Noticed: s.opts.Clock().UTC()})
	s.unsaved = true
}

// losses returns what the next manifest says to be lost.
func (s *Shard) losses() (out []commitlog.Lost) {
	if s.head != nil {
		out = s.unaccepted(s.head.Lost)
	}
	for _, l := range s.state.meta.Lost {
		out = commitlog.AddLost(out, l)
	}
	return out
}

// unaccepted returns the losses that nobody has accepted.
func (s *Shard) unaccepted(lost []commitlog.Lost) (out []commitlog.Lost) {
	for _, l := range lost {
		if !s.opts.Accept.Lost[l.Topic] {
			out = append(out, l)
		}
	}
	return out
}

// checkInputsIfDue checks the inputs of a running shard now and then. That brokers do not answer, or
// do not know a topic at present, is no error here: the next commit finds out.
func (s *Shard) checkInputsIfDue(ctx context.Context) error {
	if s.opts.Inputs == nil || s.opts.Clock().Sub(s.checked) < inputCheckEvery {
		return nil
	}
	return s.checkInputsNow(ctx)
}

func (s *Shard) checkInputsNow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, inputCheckEvery)
	defer cancel()
	if err := s.checkInputs(ctx); retry.Final(err) {
		s.failed = err
		return s.failed
	}
	return nil
}

// unreadable returns why the input cannot be read on: the reader's error, unless it follows from the
// topics not being the same ones any more.
func (s *Shard) unreadable(ctx context.Context, err error) error {
	if why := s.checkInputsNow(ctx); why != nil {
		return why
	}
	return fmt.Errorf("read the input: %w", err)
}

// checkInputs returns nil if the topics are the ones that this Shard began to read.
func (s *Shard) checkInputs(ctx context.Context) error {
	if s.opts.Inputs == nil {
		return nil
	}
	s.checked = s.opts.Clock()
	now, err := s.opts.Inputs.Identify(ctx)
	if err != nil {
		return fmt.Errorf("ask whether the input topics are still the same: %w", err)
	}
	var errs []error
	for _, topic := range s.opts.Topics.Names() {
		in := s.inputs[topic]
		why, err := s.differs(ctx, topic, in, now[topic])
		if err != nil {
			return err
		}
		if why == "" {
			errs = append(errs, s.checkPartitions(topic, now[topic]))
			continue
		}
		bounds, err := s.opts.Inputs.Bounds(ctx)
		if err != nil {
			bounds = nil // the message goes without them
		}
		errs = append(errs, s.replaced(topic, in, why, bounds[topic]))
	}
	return errors.Join(errs...)
}

// differs says why a topic is not the one that was read, "" if it is as far as can be told: by its id
// or else, and when the shard is opened, by the last record that was consumed. Records that the
// brokers of one id have forgotten, and others took their offsets, show when the shard is opened.
func (s *Shard) differs(ctx context.Context, topic string, in commitlog.Input, now Identity) (string, error) {
	switch {
	case in.ID != "" && now.ID != "" && in.ID != now.ID:
		return fmt.Sprintf("it was deleted and created again (its id was %s and is %s)", in.ID, now.ID), nil
	case in.Last == nil || s.opened && now.ID != "":
		return "", nil
	}
	at := in.Last.Offset - in.Base
	record, err := s.opts.Inputs.Fingerprint(ctx, topic, at)
	if err != nil {
		return "", fmt.Errorf("read the last record of %s that was consumed: %w", topic, err)
	}
	if record == "" || record == in.Last.Fingerprint {
		return "", nil
	}
	return fmt.Sprintf("at offset %d it has another record than the one that was read there", at), nil
}

// consumed notes the last records of a batch.
func (s *Shard) consumed(last map[string]mutation.Record) {
	for topic, record := range last {
		in, ok := s.inputs[topic]
		if ok && (in.Last == nil || in.Last.Offset < record.Offset) {
			in.Last = &record
			s.inputs[topic] = in
		}
	}
}

func (s *Shard) checkPartitions(topic string, now Identity) error {
	if now.Partitions == s.opts.Shards {
		return nil
	}
	return fmt.Errorf("kafka topic %q: %w: it has %d, and the pipeline has %d shards. Stop producers and workers, "+
		"run 'giantstream reshard' for %d shards; or create the topic with %d partitions and send its records again",
		topic, ErrPartitions, now.Partitions, s.opts.Shards, now.Partitions, s.opts.Shards)
}

// replaced says what is known about a topic that is not the one that was read.
func (s *Shard) replaced(topic string, in commitlog.Input, why string, b Bounds) error {
	covered := int64(0)
	if s.head != nil {
		covered = s.head.Next[topic] - in.Base
	}
	unread := "" // if it is empty, or its bounds are not known
	if b.End > b.Oldest {
		unread = fmt.Sprintf(", and offsets %d to %d of now are not read", b.Oldest, b.End-1)
	}
	return fmt.Errorf("kafka topic %q, partition %d: %w: %s. What it had from offset %d on is lost%s. Restore it, or "+
		"read it from its start with 'giantstream run --accept-loss %s'", topic, s.opts.Shard, ErrInputReplaced, why,
		covered, unread, topic)
}

// Bases returns, by topic, what the offsets of this Shard are above those of the brokers.
func (s *Shard) Bases() map[string]int64 {
	bases := map[string]int64{}
	for topic, in := range s.inputs {
		bases[topic] = in.Base
	}
	return bases
}
