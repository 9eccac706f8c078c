package shard

import (
	"context"
	"fmt"
	"maps"

	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
)

// counts are what became of the statements of a batch, by input. Those that were counted before are not in
// it; from is the offset of the first that is.
type counts [mutation.Inputs]struct {
	mutation.Outcomes
	from int64
}

// nameOf returns the topic of an input, "" if there is none.
func (t Topics) nameOf(in mutation.Input) string {
	return [mutation.Inputs]string{t.Nodes, t.Edges, t.Mirror}[in]
}

// applyStatements applies the statements of a batch. A statement below the offset that the commit log or the
// state had reached when the shard was opened was counted then.
func (s *Shard) applyStatements(ctx context.Context, c *change, batch *mutation.Batch) (n counts, err error) {
	var covered, counted [mutation.Inputs]int64
	for in := range mutation.Inputs {
		topic := s.opts.Topics.nameOf(in)
		covered[in], counted[in] = s.covered[topic], s.resume[topic]
	}
	rest := batch.Mutations
	for _, st := range batch.Statements {
		if st.Input >= mutation.Inputs || st.Mutations < 0 || int(st.Mutations) > len(rest) {
			return n, fmt.Errorf("the record at offset %d of input %d has %d mutations, the batch has %d left",
				st.Offset, st.Input, st.Mutations, len(rest))
		}
		c.covered = st.Offset < covered[st.Input]
		if err := c.state(ctx, rest[:st.Mutations]); err != nil {
			return n, err
		}
		rest = rest[st.Mutations:]
		if st.Offset < counted[st.Input] {
			continue
		}
		if to := &n[st.Input]; to.Sum() == 0 {
			to.from = st.Offset
		}
		c.count(st, &n[st.Input].Outcomes)
	}
	if len(rest) > 0 {
		return n, fmt.Errorf("%d mutations of a batch are of none of its records", len(rest))
	}
	return n, nil
}

// account adds what a batch counted to what the state has counted, before its offsets are.
func (s *Shard) account(n counts) {
	for in := range mutation.Inputs {
		if n[in].Sum() == 0 {
			continue
		}
		topic := s.opts.Topics.nameOf(in)
		all, begun := s.state.meta.Counted[topic]
		if at, known := s.position[topic]; !begun {
			if all.From = n[in].from; known {
				all.From = max(at, s.resume[topic])
			}
		}
		all.Outcomes = all.Plus(n[in].Outcomes)
		s.state.meta.Counted[topic] = all
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
