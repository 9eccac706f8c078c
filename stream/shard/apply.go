package shard

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
)

// mirrorChunk is how many mirrored assertions are gathered before they go to the Mirror.
const mirrorChunk = 4096

// change applies mutations to a state in memory. Later mutations see earlier ones.
type change struct {
	known  *pending
	window int64
	dirty  int // nodes that have become due
	nodes  int64
	edges  int64
	orders int64  // with lines
	lines  int64  // of orders
	full   string // an order that may have more lines than are kept, "" for none
	// vectors says by how much the number of stated vectors of each name changes.
	vectors vectorCounts
	orderClock
	// Of the statement at hand: some fact in it was new, some fact in it lost to a newer one, some lines of an order
	// that it states do not count any more. A fact that is repeated is none of them.
	won, lost, expired bool

	mirror  Mirror
	pending []mutation.Mutation // assertions that the Mirror does not have yet
	room    int                 // for how many of them room is made at once

	// covered: the mutation's record is below the head manifest's offset. Its row is committed and
	// its mirror is durable, so the mutation is applied only to rebuild the state.
	covered bool
	// plain: no link has a kind. If one has, a row shows the time of a link without a kind to the same end, too.
	plain bool
	// eager: the state lacks some of what the head manifest covers, so it is not known yet whether
	// a row changes. Every link that changes makes its owner due.
	eager bool
}

// applyStatement applies the mutations of one statement.
func (c *change) applyStatement(ctx context.Context, said []mutation.Mutation) error {
	c.won, c.lost, c.expired = false, false, false
	for i := range said {
		if err := c.apply(ctx, &said[i]); err != nil {
			return err
		}
	}
	return nil
}

// count counts the statement that was applied last.
func (c *change) count(st mutation.Statement, into *mutation.Outcomes) {
	switch {
	case st.Refused:
		into.DeadLetters++
	case st.Mutations == 0:
		into.Empty++
	case c.expired:
		into.Expired++
	case c.won:
		into.Applied++
	case c.lost:
		into.Superseded++
	default:
		into.Repeated++
	}
}

// apply applies one mutation. For the rules see docs/PROTOCOL.md, "Facts and versions".
func (c *change) apply(ctx context.Context, m *mutation.Mutation) error {
	if m.ID == "" {
		return fmt.Errorf("mutation %d of offset %d has no node id", m.Op, m.Version.Offset)
	}
	switch m.Op {
	case mutation.SetOrder, mutation.AddLines, mutation.RemoveLines:
		return c.applyOrder(m)
	}
	if m.HasVectors {
		if err := c.setVectors(m); err != nil {
			return err
		}
		if m.Op == mutation.SetAttributes && m.Attributes == "" {
			return nil
		}
	}
	n := c.known.node(m.ID)
	if m.Op == mutation.MirrorPut || m.Op == mutation.MirrorDelete {
		return c.mirrored(n, m)
	}
	if m.Version.Rank >= uint8(mutation.Further) && !m.OfFurther() {
		return fmt.Errorf("mutation of %q has rank %d: further inputs state attributes, and links of one kind", m.ID,
			m.Version.Rank)
	}
	h, err := c.known.header(n)
	if err != nil {
		return err
	}
	switch m.Op {
	case mutation.PutNode:
		return c.putNode(ctx, n, h, m)
	case mutation.DeleteNode:
		return c.deleteNode(n, h, m)
	case mutation.PutEdge, mutation.DeleteEdge:
		return c.assert(ctx, n, &h, farEnd(m.Other, m.Kind), statedBy(m, m.Op == mutation.PutEdge))
	case mutation.SetEdges:
		return c.replace(ctx, n, &h, farEnds(m), statedBy(m, true))
	case mutation.ClearEdges:
		return c.replace(ctx, n, &h, nil, statedBy(m, true))
	case mutation.SetAttributes:
		changed, err := c.setAttributes(n, m.Attributes, m.Version)
		if err != nil || !changed {
			return err
		}
		return c.markAttributes(n, &h)
	}
	return fmt.Errorf("mutation of %q has unknown op %d", m.ID, m.Op)
}

func (c *change) putNode(ctx context.Context, n *pendingNode, h nodeHeader, m *mutation.Mutation) (err error) {
	before, existed := h, h.exists()
	h.known = true
	dirty, attributes := false, false // whether the node's row, or its attributes alone, must be written
	if !h.stated || m.Version.Compare(h.at) > 0 {
		same, sameTime := false, m.Version.EventTime == h.at.EventTime
		// A record often says nothing that is new but its event time, which a row of attributes has, too.
		if existed {
			if same, err = c.known.sameText(n, m.Text, m.Class); err != nil {
				return err
			}
		}
		h.stated, h.deleted, h.at = true, false, m.Version
		if !same {
			c.known.setText(n, m.Text, m.Class)
		}
		if !existed {
			c.nodes++
		}
		dirty, attributes = !same, same && !sameTime
		c.won = c.won || dirty || attributes
	} else {
		c.lose(m.Version, h.at)
		if h.deleted && !before.known {
			dirty = true // deleted before it was known: now there is a row, which says deleted
		}
	}
	if h != before {
		c.known.setHeader(n, &h)
	}
	if m.Attributes != "" {
		changed, err := c.setAttributes(n, m.Attributes, m.Version)
		if err != nil {
			return err
		}
		attributes = attributes || changed
	}
	switch {
	case dirty:
		err = c.mark(n)
	case attributes:
		err = c.markAttributes(n, &h)
	}
	if err != nil {
		return err
	}
	if m.HasEdges {
		return c.replace(ctx, n, &h, farEnds(m), statedBy(m, true))
	}
	return nil
}

// farEnds are those of the links that a mutation lists.
func farEnds(m *mutation.Mutation) []string {
	if m.Kind == (mutation.Kind{}) && m.Kinds == nil {
		return m.Others
	}
	all := make([]string, 0, len(m.Others))
	for other, kind := range m.Ends() {
		all = append(all, farEnd(other, kind))
	}
	return all
}

// statedBy is what a mutation says of its links.
func statedBy(m *mutation.Mutation, live bool) assertion {
	said := assertion{set: true, live: live, at: m.Version}
	if live {
		said.weight = m.Weight
	}
	return said
}

func (c *change) deleteNode(n *pendingNode, h nodeHeader, m *mutation.Mutation) error {
	if h.stated && m.Version.Compare(h.at) <= 0 {
		c.lose(m.Version, h.at)
		return nil
	}
	existed := h.exists()
	same := h.stated && h.deleted && h.at.EventTime == m.Version.EventTime
	c.won = c.won || !same
	h.stated, h.deleted, h.at = true, true, m.Version
	c.known.setHeader(n, &h)
	if existed {
		c.nodes--
		c.known.deleteText(n)
	}
	if h.known && !same {
		return c.mark(n)
	}
	return nil
}

// lose notes that a fact as of one version meets what is known, unless that is the same version.
func (c *change) lose(said, known mutation.Version) {
	c.lost = c.lost || said.Compare(known) < 0
}

// assert enters what src says of its edge to a far end.
func (c *change) assert(ctx context.Context, src *pendingNode, h *nodeHeader, far string, said assertion) error {
	if dst, _ := splitFarEnd(far); dst == "" || dst == src.id {
		return nil // no node is its own neighbour
	}
	if m := h.replaced[family(said.at.Rank)]; m.set && said.at.Compare(m.at) < 0 {
		// Dead on arrival: src's whole list was replaced later. Retract the edge as of the
		// replacement, as the other order would have done.
		c.lose(said.at, m.at)
		said = assertion{set: true, at: m.at}
		// What the link is said to be from here on is the replacement's statement.
		defer func(won bool) { c.won = won }(c.won)
	}
	l, err := c.known.link(src, far)
	if err != nil {
		return err
	}
	return c.restate(ctx, src, h, l, said)
}

// restate enters src's assertion about one of its links, and mirrors it.
func (c *change) restate(ctx context.Context, src *pendingNode, h *nodeHeader, l *pendingLink, said assertion) error {
	if before := l.adjacency; said.newer(l.out[family(said.at.Rank)]) {
		l.out[family(said.at.Rank)], l.set = said, true
		was, is := before.effective(), l.effective()
		switch {
		case is.live && !was.live:
			c.edges++
		case was.live && !is.live:
			c.edges--
		}
		c.won = c.won || is == said && !was.repeats(said)
		c.lose(said.at, is.at)
		if err := c.markLink(src, h, l.other, &before, &l.adjacency); err != nil {
			return err
		}
	} else {
		c.lose(said.at, l.out[family(said.at.Rank)].at)
	}
	// Mirror what this statement decided, even if it was seen before: a crash may have lost its
	// first mirror.
	if out := l.effective(); out.at == said.at {
		return c.publishMirror(ctx, src.id, l.other, out)
	}
	return nil
}

// replace enters src's whole edge list for one family, each edge with what is said of all. Older
// assertions that are not listed are retracted.
func (c *change) replace(ctx context.Context, src *pendingNode, h *nodeHeader, others []string,
	said assertion) error {
	at := said.at
	mk := &h.replaced[family(at.Rank)]
	if !mk.set || at.Compare(mk.at) > 0 {
		c.won = c.won || !mk.set || at.EventTime != mk.at.EventTime
		*mk = mark{set: true, at: at}
		c.known.setHeader(src, h)
	}
	c.lose(at, mk.at)
	if at == mk.at {
		if err := c.retract(ctx, src, h, others, at); err != nil {
			return err
		}
	}
	for _, dst := range others {
		if err := c.assert(ctx, src, h, dst, said); err != nil {
			return err
		}
	}
	return nil
}

// retract retracts those of src's edges that the list stated at a version leaves out. Edges that
// this list has retracted before are mirrored again.
func (c *change) retract(ctx context.Context, src *pendingNode, h *nodeHeader, keep []string,
	at mutation.Version) error {
	listed := make(map[string]bool, len(keep))
	for _, dst := range keep {
		listed[dst] = true
	}
	return c.known.eachLink(src, func(dst string, a adjacency) error {
		if old := a.out[family(at.Rank)]; listed[dst] || !old.set || old.at.Compare(at) > 0 {
			return nil
		}
		return c.restate(ctx, src, h, c.known.readLink(src, dst, &a), assertion{set: true, live: false, at: at})
	})
}

// mirrored enters the assertion of the far end, m.Other, about its edge to n.
func (c *change) mirrored(n *pendingNode, m *mutation.Mutation) error {
	if m.Other == "" || m.Other == m.ID {
		return nil
	}
	l, err := c.known.link(n, farEnd(m.Other, m.Kind))
	if err != nil {
		return err
	}
	said := statedBy(m, m.Op == mutation.MirrorPut)
	if !said.newer(l.in) {
		c.lose(said.at, l.in.at)
		return nil
	}
	before := l.adjacency
	c.won = c.won || !before.in.repeats(said)
	l.in, l.set = said, true
	h, err := c.known.header(n)
	if err != nil {
		return err
	}
	return c.markLink(n, &h, l.other, &before, &l.adjacency)
}

// publishMirror sends an assertion to the shard of its far end.
func (c *change) publishMirror(ctx context.Context, src, far string, out assertion) error {
	dst, kind := splitFarEnd(far)
	if c.mirror == nil || c.covered || kind.Directed {
		return nil
	}
	op := mutation.MirrorDelete
	if out.live {
		op = mutation.MirrorPut
	}
	if c.pending == nil {
		c.pending = make([]mutation.Mutation, 0, c.room)
	}
	c.pending = append(c.pending, mutation.Mutation{Op: op, ID: dst, Other: src, Weight: out.weight,
		Kind: kind, Version: out.at})
	if len(c.pending) >= mirrorChunk {
		return c.sendMirror(ctx)
	}
	return nil
}

func (c *change) sendMirror(ctx context.Context) error {
	if len(c.pending) == 0 {
		return nil
	}
	if err := c.mirror.Publish(ctx, c.pending); err != nil {
		return fmt.Errorf("publish %d mirrored edges: %w", len(c.pending), err)
	}
	c.pending = nil // the mirror may have kept the slice
	return nil
}

// markLink makes the owner due if the link to a far end has changed in a way that shows in the owner's row, and
// suspect if it has changed otherwise. Of a plain link that is stated again the row shows nothing but the event time.
func (c *change) markLink(owner *pendingNode, h *nodeHeader, far string, before, after *adjacency) error {
	c.plain = c.plain && strings.IndexByte(far, 0) < 0
	if before.effective() == after.effective() && before.in == after.in {
		return nil
	}
	t0, ok0 := before.eventTime()
	t1, ok1 := after.eventTime()
	was, is := before.shown(), after.shown()
	switch {
	case c.eager:
	case !h.exists(), was == is && ok0 == ok1 && t0 == t1:
		return c.setMark(owner, markSuspect)
	case c.plain && was.label == is.label && was.weight == is.weight && !is.weight.Stated():
		return c.setMark(owner, markAttributes)
	}
	return c.mark(owner)
}

// mark notes that a node's row must be written with the open window.
func (c *change) mark(n *pendingNode) error { return c.setMark(n, markDue) }

func (c *change) setMark(n *pendingNode, kind byte) error {
	if c.covered {
		return nil
	}
	due, err := c.known.mark(c.window, n, kind)
	if due {
		c.dirty++
	}
	return err
}

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
		if err := c.applyStatement(ctx, rest[:st.Mutations]); err != nil {
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
