package stream

import (
	"context"
	"fmt"
)

// mirrorChunk is how many mirrored assertions are gathered before they are
// handed to the Mirror.
const mirrorChunk = 4096

// change applies mutations to a state, in memory: later ones see earlier ones.
type change struct {
	known  *pending
	window int64
	dirty  int // nodes newly due
	nodes  int64
	edges  int64

	mirror  Mirror
	pending []Mutation // assertions not yet handed over

	// covered: the mutation's record is below the head manifest's offset.
	// Its row and its mirror were seen to before that manifest was made,
	// and it is applied only to bring the state back.
	covered bool
	// eager: the state lacks some of what the head manifest covers, so
	// whether a row changes cannot be told yet. Every link that changes
	// marks its owner, in case.
	eager bool
}

// apply applies one mutation. The rules are those of doc.go, "Facts".
func (c *change) apply(ctx context.Context, m *Mutation) error {
	if m.ID == "" {
		return fmt.Errorf("mutation %d of offset %d has no node id", m.Op, m.Version.Offset)
	}
	if m.Version.Rank >= families {
		return fmt.Errorf("mutation of %q has rank %d, only 0 (nodes) and 1 (edges) exist", m.ID, m.Version.Rank)
	}
	switch m.Op {
	case PutNode:
		return c.putNode(ctx, m)
	case DeleteNode:
		return c.deleteNode(m)
	case PutEdge, DeleteEdge:
		h, err := c.known.head(m.ID)
		if err != nil {
			return err
		}
		return c.assert(ctx, &h, m.ID, m.Other, m.Op == PutEdge, m.Version)
	case SetEdges, ClearEdges:
		h, err := c.known.head(m.ID)
		if err != nil {
			return err
		}
		var others []string
		if m.Op == SetEdges {
			others = m.Others
		}
		return c.replace(ctx, &h, m.ID, others, m.Version)
	case MirrorPut, MirrorDelete:
		return c.mirrored(m)
	}
	return fmt.Errorf("mutation of %q has unknown op %d", m.ID, m.Op)
}

func (c *change) putNode(ctx context.Context, m *Mutation) error {
	h, err := c.known.head(m.ID)
	if err != nil {
		return err
	}
	before, existed := h, h.exists()
	h.known = true
	dirty := false
	if !h.stated || m.Version.Compare(h.at) > 0 {
		same := false
		if existed && m.Version.EventTime == h.at.EventTime {
			if same, err = c.known.sameText(m.ID, m.Text, m.Class); err != nil {
				return err
			}
		}
		h.stated, h.deleted, h.at = true, false, m.Version
		c.known.setText(m.ID, m.Text, m.Class)
		if !existed {
			c.nodes++
		}
		dirty = !same
	} else if h.deleted && !before.known {
		dirty = true // deleted before it was known: now there is a row to say so
	}
	if h != before {
		c.known.setHead(m.ID, &h)
	}
	if dirty {
		if err := c.mark(m.ID); err != nil {
			return err
		}
	}
	if m.HasEdges {
		return c.replace(ctx, &h, m.ID, m.Others, m.Version)
	}
	return nil
}

func (c *change) deleteNode(m *Mutation) error {
	h, err := c.known.head(m.ID)
	if err != nil {
		return err
	}
	if h.stated && m.Version.Compare(h.at) <= 0 {
		return nil
	}
	existed := h.exists()
	same := h.stated && h.deleted && h.at.EventTime == m.Version.EventTime
	h.stated, h.deleted, h.at = true, true, m.Version
	c.known.setHead(m.ID, &h)
	if existed {
		c.nodes--
		c.known.deleteText(m.ID)
	}
	if h.known && !same {
		return c.mark(m.ID)
	}
	return nil
}

// assert states that src says live (or not) of its edge to dst.
func (c *change) assert(ctx context.Context, h *head, src, dst string, live bool, at Version) error {
	if dst == "" || dst == src {
		return nil // no node is its own neighbour
	}
	if m := h.replaced[at.Rank]; m.set && at.Compare(m.at) < 0 {
		// Dead on arrival: src's whole list was replaced later. To leave
		// what the other order would have left, take it back as of then.
		live, at = false, m.at
	}
	a, err := c.known.adjacency(src, dst)
	if err != nil {
		return err
	}
	return c.restate(ctx, h, src, dst, &a, assertion{set: true, live: live, at: at})
}

// restate enters src's assertion about dst, whose entry is a, and mirrors it.
func (c *change) restate(ctx context.Context, h *head, src, dst string, a *adjacency, said assertion) error {
	if before := *a; said.newer(a.out[said.at.Rank]) {
		a.out[said.at.Rank] = said
		c.known.setAdjacency(src, dst, a)
		if was, is := before.effective().live, a.effective().live; was != is {
			if is {
				c.edges++
			} else {
				c.edges--
			}
		}
		if err := c.markLink(h, src, &before, a); err != nil {
			return err
		}
	}
	// Mirror what this statement decided. That includes a statement seen
	// before: after a crash its first mirror may have been lost.
	if out := a.effective(); out.at == said.at {
		return c.publish(ctx, src, dst, out)
	}
	return nil
}

// replace states src's whole edge list for one family: what is not listed and
// older is taken back.
func (c *change) replace(ctx context.Context, h *head, src string, others []string, at Version) error {
	mk := &h.replaced[at.Rank]
	if !mk.set || at.Compare(mk.at) > 0 {
		*mk = mark{set: true, at: at}
		c.known.setHead(src, h)
	}
	if at == mk.at {
		if err := c.takeBack(ctx, h, src, others, at); err != nil {
			return err
		}
	}
	for _, dst := range others {
		if err := c.assert(ctx, h, src, dst, true, at); err != nil {
			return err
		}
	}
	return nil
}

// takeBack walks src's edges and restates those that the list of version at
// leaves out. Those it has taken back before are mirrored again.
func (c *change) takeBack(ctx context.Context, h *head, src string, keep []string, at Version) error {
	listed := make(map[string]bool, len(keep))
	for _, dst := range keep {
		listed[dst] = true
	}
	return c.known.eachLink(src, func(dst string, a adjacency) error {
		if old := a.out[at.Rank]; listed[dst] || !old.set || old.at.Compare(at) > 0 {
			return nil
		}
		return c.restate(ctx, h, src, dst, &a, assertion{set: true, live: false, at: at})
	})
}

// mirrored enters what the far end says of its edge to m.ID.
func (c *change) mirrored(m *Mutation) error {
	if m.Other == "" || m.Other == m.ID {
		return nil
	}
	a, err := c.known.adjacency(m.ID, m.Other)
	if err != nil {
		return err
	}
	said := assertion{set: true, live: m.Op == MirrorPut, at: m.Version}
	if !said.newer(a.in) {
		return nil
	}
	before := a
	a.in = said
	c.known.setAdjacency(m.ID, m.Other, &a)
	h, err := c.known.head(m.ID)
	if err != nil {
		return err
	}
	return c.markLink(&h, m.ID, &before, &a)
}

// publish hands an assertion to the shard of its far end.
func (c *change) publish(ctx context.Context, src, dst string, out assertion) error {
	if c.mirror == nil || c.covered {
		return nil
	}
	op := MirrorDelete
	if out.live {
		op = MirrorPut
	}
	c.pending = append(c.pending, Mutation{Op: op, ID: dst, Other: src, Version: out.at})
	if len(c.pending) >= mirrorChunk {
		return c.handOver(ctx)
	}
	return nil
}

func (c *change) handOver(ctx context.Context) error {
	if len(c.pending) == 0 {
		return nil
	}
	if err := c.mirror.Publish(ctx, c.pending); err != nil {
		return fmt.Errorf("publish %d mirrored edges: %w", len(c.pending), err)
	}
	c.pending = nil // the mirror may have kept the slice
	return nil
}

// markLink marks the owner if the link's part in its row has changed, and
// suspects it if only what lies behind the row has.
func (c *change) markLink(h *head, owner string, before, after *adjacency) error {
	if before.effective() == after.effective() && before.in == after.in {
		return nil
	}
	t0, ok0 := before.eventTime()
	t1, ok1 := after.eventTime()
	same := before.label() == after.label() && ok0 == ok1 && t0 == t1
	if !c.eager && (same || !h.exists()) {
		return c.setMark(owner, markSuspect)
	}
	return c.mark(owner)
}

// mark notes that a node's row must be written with the open window.
func (c *change) mark(id string) error { return c.setMark(id, markDue) }

func (c *change) setMark(id string, kind byte) error {
	if c.covered {
		return nil
	}
	due, err := c.known.mark(c.window, id, kind)
	if due {
		c.dirty++
	}
	return err
}
