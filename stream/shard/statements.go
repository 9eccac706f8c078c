package shard

import (
	"context"
	"fmt"
	"maps"

	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
)

// tally is what becomes of the statements of one input in a batch.
type tally struct {
	topic string
	// covered and counted are offsets of the topic: the statements below them are in committed rows, or were
	// counted when the shard was opened.
	covered, counted int64
	mutation.Outcomes
	from int64 // offset of the first that is counted here
}

// tallyOf returns an empty tally of an input.
func (s *Shard) tallyOf(in mutation.Input) (*tally, error) {
	topic := s.opts.Topics.nameOf(in)
	if topic == "" {
		return nil, fmt.Errorf("a batch has a record of input %d, which the shard does not read", in)
	}
	return &tally{topic: topic, covered: s.covered[topic], counted: s.resume[topic]}, nil
}

// applyStatements applies the statements of a batch, and counts them by input.
func (s *Shard) applyStatements(ctx context.Context, c *change, batch *mutation.Batch) (
	tallies map[mutation.Input]*tally, err error) {
	tallies = map[mutation.Input]*tally{}
	rest := batch.Mutations
	for _, st := range batch.Statements {
		if st.Mutations < 0 || int(st.Mutations) > len(rest) {
			return nil, fmt.Errorf("the record at offset %d of input %d has %d mutations, the batch has %d left",
				st.Offset, st.Input, st.Mutations, len(rest))
		}
		to := tallies[st.Input]
		if to == nil {
			if to, err = s.tallyOf(st.Input); err != nil {
				return nil, err
			}
			tallies[st.Input] = to
		}
		c.covered = st.Offset < to.covered
		if err := c.state(ctx, rest[:st.Mutations]); err != nil {
			return nil, err
		}
		rest = rest[st.Mutations:]
		if st.Offset < to.counted {
			continue
		}
		if to.Sum() == 0 {
			to.from = st.Offset
		}
		c.count(st, &to.Outcomes)
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%d mutations of a batch are of none of its records", len(rest))
	}
	return tallies, nil
}

// account adds what a batch counted to what the state has counted, before its offsets are.
func (s *Shard) account(tallies map[mutation.Input]*tally) {
	for _, n := range tallies {
		if n.Sum() == 0 {
			continue
		}
		all, begun := s.state.meta.Counted[n.topic]
		if at, known := s.position[n.topic]; !begun {
			if all.From = n.from; known {
				all.From = max(at, s.resume[n.topic])
			}
		}
		all.Outcomes = all.Plus(n.Outcomes)
		s.state.meta.Counted[n.topic] = all
	}
}

// resumeCounts takes the counts of each topic from where most of it was consumed, the commit log or the
// state. So a record is counted once, also if another worker has committed less than this state holds of one
// topic, and more of another.
func (s *Shard) resumeCounts() {
	mine := s.state.meta.Counted
	s.state.meta.Counted = map[string]commitlog.Counted{}
	if s.head != nil {
		maps.Copy(s.state.meta.Counted, s.head.Counted)
	}
	for topic, applied := range s.state.meta.Applied {
		if applied <= s.covered[topic] {
			continue
		}
		if c, ok := mine[topic]; ok {
			s.state.meta.Counted[topic] = c
		} else { // a release that did not count has applied what the log lacks
			delete(s.state.meta.Counted, topic)
		}
	}
}
