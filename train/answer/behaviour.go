package answer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"giantstream/train/generation"
)

// behaviour is what items are ordered with as the embeddings of a generation have it, while orders are followed: the
// items that complements solves get new rows, and with these new embeddings. Once all had their turn, the embeddings
// are a function of the generation, and of the orders, nodes and texts of the log. Update alone uses it.
type behaviour struct {
	generation *generation.Following
	// numbers are those of the directions, by the items of complements.
	numbers []int32
	// moved are the rows of items whose embeddings have yet to be made of them, by ids.
	moved map[string][]uint16
	// halted: embeddings cannot be made of the texts.
	halted bool
	log    *logged
}

// newBehaviour returns nil for a generation whose embeddings no orders change.
func newBehaviour(g *generation.Following, c *complements) *behaviour {
	if c == nil || c.live == nil || g.Directions() == nil {
		return nil
	}
	return &behaviour{generation: g, moved: map[string][]uint16{}, log: newLogged(g, c.isNode)}
}

// noteNode notes that a node has come or gone.
func (b *behaviour) noteNode(id string) {
	if b != nil {
		b.log.compare(id)
	}
}

// follow makes new rows of items that were solved.
func (b *behaviour) follow(c *complements, items []int32) {
	if b == nil || b.halted {
		return
	}
	for k := len(b.numbers); k < len(c.hashes); k++ {
		b.numbers = append(b.numbers, b.generation.Directions().Find(c.hashes[k]))
	}
	b.generation.OrderedRows(c.live, items, b.numbers, func(item int32, row []uint16) {
		id := c.ids[item]
		if now, _ := b.generation.Ordered(id); !slices.Equal(row, now) && c.isNode(id) {
			b.moved[id] = row
		} else if !slices.Equal(b.moved[id], row) { // or else its embedding could not be made
			delete(b.moved, id)
		}
	})
}

// encodeMoved makes the embeddings of items whose rows have changed, of their texts, which are read for it. As long as
// they are being read, the items wait.
func (c *Catalog) encodeMoved(s *state, now func() time.Time) error {
	b := s.behaviour
	if b == nil || len(b.moved) == 0 {
		return nil
	}
	began, encoded := now(), 0
	defer func() { s.complements.noteEncoded(encoded, len(b.moved), now().Sub(began)) }()
	ids := make([]string, 0, len(b.moved))
	for id := range b.moved {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for ; len(ids) > 0; ids = ids[min(batch, len(ids)):] {
		some := ids[:min(batch, len(ids))]
		texts, err := c.texts.get(some)
		if errors.Is(err, ErrTexts) {
			return nil
		}
		if err != nil {
			b.halted = true // rather than read all texts again and again
			clear(b.moved)
			return fmt.Errorf("embeddings do not follow the orders before the next generation: %w", err)
		}
		if err := s.encodeAgain(some, texts); err != nil {
			return err
		}
		encoded += len(some)
	}
	return nil
}

// encodeAgain makes the embeddings of nodes that have moved. Where it fails, they wait.
func (s *state) encodeAgain(ids, texts []string) error {
	var known, said []string
	for k, id := range ids {
		s.behaviour.generation.FollowOrders(id, s.behaviour.moved[id])
		if texts[k] != "" {
			known, said = append(known, id), append(said, texts[k])
		}
	}
	w := s.writer()
	records, err := s.generation.EmbedNodes(known, said)
	if err != nil {
		return err
	}
	for k, r := range records {
		w.take(known[k], r.Vector)
	}
	if err := w.flush(); err != nil {
		return err
	}
	for _, id := range ids {
		delete(s.behaviour.moved, id)
		s.behaviour.log.compare(id)
	}
	return nil
}
