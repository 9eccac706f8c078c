package answer

import (
	"slices"
	"strings"
	"sync"

	"giantstream/train/generation"
	"giantstream/train/numeric"
)

// farMoved is the square of the distance between two rows of what an item is ordered with, beyond which the new one is
// sent at once. Rows have at most the length 1, so the cosine of two embeddings of an item that differ by less is at
// least 0.995.
const farMoved = 0.01

// logged compares what items are ordered with as they are answered here with what the commit log says of it, by which
// all others encode them. It is safe for concurrent use.
type logged struct {
	generation *generation.Following
	isNode     func(id string) bool

	mu sync.Mutex
	// said is, by id, what the log has said since the generation's cut.
	said map[string]stated
	// far and near are the nodes that differ, and are not on their way into the log: by more than farMoved, or less.
	far, near map[string]struct{}
}

// stated is what the log says of an item: the row, unless the generation's own counts, and when that was stated.
type stated struct {
	row []uint16
	own bool
	at  int64
}

func newLogged(g *generation.Following, isNode func(id string) bool) *logged {
	return &logged{generation: g, isNode: isNode, said: map[string]stated{}, far: map[string]struct{}{},
		near: map[string]struct{}{}}
}

// note notes what the log says.
func (l *logged) note(id string, s stated) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.said[id]; !known {
		id = strings.Clone(id)
	}
	l.said[id] = s
	l.place(id)
}

// compare is called once the row that an item is embedded with has changed, or a node has come or gone.
func (l *logged) compare(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.place(id)
}

// place puts an item where it belongs. Callers hold mu.
func (l *logged) place(id string) {
	delete(l.far, id)
	delete(l.near, id)
	if !l.isNode(id) {
		return
	}
	now, own := l.generation.Ordered(id)
	said := own
	if s, ok := l.said[id]; ok && !s.own {
		said = s.row
	}
	switch {
	case slices.Equal(now, said):
	case squareBetween(now, said) > farMoved:
		l.far[id] = struct{}{}
	default:
		l.near[id] = struct{}{}
	}
}

// squareBetween is the square of the distance of two rows of bfloat16, of which nil is zero.
func squareBetween(a, b []uint16) (sum float32) {
	for k := range max(len(a), len(b)) {
		var d float32
		if k < len(a) {
			d = numeric.FromBF16(a[k])
		}
		if k < len(b) {
			d -= numeric.FromBF16(b[k])
		}
		sum += d * d
	}
	return sum
}

// OrderedRow is what an item is ordered with as a catalog embeds it, which the commit log does not say.
type OrderedRow struct {
	ID string
	// Row is of bfloat16 by the directions of the generation, nil for none.
	Row []uint16
	// After is the event time of what the log says of it, 0 for nothing.
	After int64
}

// TakeOrdered takes up to n of the items whose embeddings follow orders that the commit log does not say, and the
// generation that they are of. Until all orders are followed, these are items that have moved far, so that an item
// which is ordered again and again is not taken for each order. It may be called beside Update.
func (c *Catalog) TakeOrdered(n int) (generation int64, taken []OrderedRow) {
	s, from := c.findUntold()
	if s == nil {
		return 0, nil
	}
	l := s.behaviour.log
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ids := range from {
		for id := range ids {
			if len(taken) == n {
				return s.generation.Doc.Generation, taken
			}
			delete(ids, id)
			row, _ := l.generation.Ordered(id)
			taken = append(taken, OrderedRow{id, row, l.said[id].at})
		}
	}
	return s.generation.Doc.Generation, taken
}

// findUntold returns the items that may be taken, nil and none where orders are not followed.
func (c *Catalog) findUntold() (s *state, from []map[string]struct{}) {
	s = c.now.Load()
	if s == nil || s.behaviour == nil {
		return nil, nil
	}
	from = append(from, s.behaviour.log.far)
	if f, _ := c.Following(); f.Stale == 0 && f.Moved == 0 {
		from = append(from, s.behaviour.log.near)
	}
	return s, from
}

// PutBackOrdered puts items back that TakeOrdered has returned for a generation and nobody was told of.
func (c *Catalog) PutBackOrdered(generation int64, taken []OrderedRow) {
	s, _ := c.findUntold()
	if s == nil || s.generation.Doc.Generation != generation {
		return
	}
	s.mu.RLock() // compare looks into the index
	defer s.mu.RUnlock()
	for _, r := range taken {
		s.behaviour.log.compare(r.ID)
	}
}

// Tells says whether there are items that TakeOrdered takes.
func (c *Catalog) Tells() bool {
	s, from := c.findUntold()
	if s == nil {
		return false
	}
	s.behaviour.log.mu.Lock()
	defer s.behaviour.log.mu.Unlock()
	for _, ids := range from {
		if len(ids) > 0 {
			return true
		}
	}
	return false
}

// Untold counts the items whose embeddings follow orders that the commit log does not say.
func (c *Catalog) Untold() int {
	s, _ := c.findUntold()
	if s == nil {
		return 0
	}
	s.behaviour.log.mu.Lock()
	defer s.behaviour.log.mu.Unlock()
	return len(s.behaviour.log.far) + len(s.behaviour.log.near)
}
