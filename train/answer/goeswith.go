package answer

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"giantstream/sink"
	"giantstream/train/generation"
	"giantstream/train/numeric"
)

// textShare is how much the cosine with the mean of the asked nodes counts beside the scores of orders
// (docs/measurements/2026-11-26.md).
const textShare = 0.1

// complements are the rows of a generation's goes-with.parquet by partner, which is what a basket has. They take 12
// bytes a row, and about 80 and its id for each node that has any.
type complements struct {
	number map[string]int32
	ids    []string
	// start is where the rows of each partner begin, and at last how many there are.
	start   []int
	item    []int32
	score   []float32
	support []int32
}

// readComplements reads the rows twice, so that they are held once. It returns nil for a generation without orders.
func readComplements(ctx context.Context, store sink.Store, doc *generation.Doc) (*complements, error) {
	if doc.GoesWith == nil {
		return nil, nil
	}
	c := &complements{number: map[string]int32{}}
	var counts []int
	for r, err := range generation.Complements(ctx, store, doc) {
		if err != nil {
			return nil, err
		}
		c.intern(r.Item)
		p := c.intern(r.Partner)
		counts = append(counts, make([]int, len(c.ids)-len(counts))...)
		counts[p]++
	}
	c.start = make([]int, len(c.ids)+1)
	for p, n := range counts {
		c.start[p+1] = c.start[p] + n
	}
	rows := c.start[len(c.ids)]
	c.item, c.score, c.support = make([]int32, rows), make([]float32, rows), make([]int32, rows)
	next := slices.Clone(c.start)
	for r, err := range generation.Complements(ctx, store, doc) {
		if err != nil {
			return nil, err
		}
		at := &next[c.number[r.Partner]]
		c.item[*at], c.score[*at], c.support[*at] = c.number[r.Item], r.Score, r.Support
		*at++
	}
	return c, nil
}

func (c *complements) intern(id string) int32 {
	n, known := c.number[id]
	if !known {
		id = strings.Clone(id)
		n = int32(len(c.ids))
		c.number[id], c.ids = n, append(c.ids, id)
	}
	return n
}

// Basket is what goes with a basket of nodes, the highest score first.
type Basket struct {
	Generation int64
	Items      []Complement
}

// Complement goes with a basket.
type Complement struct {
	ID string
	// Score is the sum of what the nodes of the basket say, and 0.1 times the cosine with the mean of their embeddings.
	Score float64
	// Support is how many orders have the node and one of the basket, counted for each of the basket.
	Support int64
	// Partner is the node of the basket that says it most, "" where texts alone say it.
	Partner    string
	Attributes map[string]any // as of a Neighbour
	best       float32
}

// GoesWith returns the nodes that go best with a basket of nodes, each of which counts once. Errors are those of
// ByID, and generation.ErrNoOrders.
func (c *Catalog) GoesWith(basket []string, w Wanted) (Basket, error) {
	s := c.now.Load()
	if s == nil {
		return Basket{}, ErrEmpty
	}
	number := s.generation.Doc.Generation
	if s.complements == nil {
		return Basket{}, fmt.Errorf("generation %d: %w", number, generation.ErrNoOrders)
	}
	basket = slices.Compact(slices.Sorted(slices.Values(basket)))
	s.mu.RLock()
	defer s.mu.RUnlock()
	mean, err := s.mean(basket)
	if err != nil {
		return Basket{}, err
	}
	in, err := s.among(w)
	if err != nil {
		return Basket{}, err
	}
	found := s.complements.of(basket)
	if len(found) == 0 && mean == nil {
		return Basket{}, fmt.Errorf("none of the %d nodes is in an order with another, and they have %w", len(basket),
			ErrNoText)
	}
	for _, n := range s.index.Search(mean, w.K+len(basket), in) {
		if found[n.ID] == nil {
			found[n.ID] = &Complement{ID: n.ID}
		}
	}
	for _, id := range basket {
		delete(found, id)
	}
	all := make([]Complement, 0, len(found))
	v := make([]float32, s.index.Dim())
	for id, one := range found {
		h, known := s.index.Handle(id)
		if !known || in != nil && !in.Has(h) {
			continue // deleted since the cut, or not wanted
		}
		if s.index.Vector(id, v) && mean != nil {
			one.Score += textShare * numeric.Cosine(v, mean)
		}
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b Complement) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.ID, b.ID))
	})
	all = all[:min(w.K, len(all))]
	for i := range all {
		all[i].Attributes = s.show(all[i].ID, w)
	}
	return Basket{number, all}, nil
}

// of adds up the rows of a basket.
func (c *complements) of(basket []string) map[string]*Complement {
	found := map[int32]*Complement{}
	for _, id := range basket {
		p, ok := c.number[id]
		if !ok {
			continue
		}
		for at := c.start[p]; at < c.start[p+1]; at++ {
			one := found[c.item[at]]
			if one == nil {
				one = &Complement{ID: c.ids[c.item[at]], best: -math.MaxFloat32}
				found[c.item[at]] = one
			}
			one.Score += float64(c.score[at])
			one.Support += int64(c.support[at])
			if c.score[at] > one.best {
				one.best, one.Partner = c.score[at], id
			}
		}
	}
	byID := make(map[string]*Complement, len(found))
	for _, one := range found {
		byID[one.ID] = one
	}
	return byID
}

// mean returns the mean of the embeddings of some nodes, nil if none has one: ErrUnknown for one that does not exist.
func (s *state) mean(ids []string) ([]float32, error) {
	mean, v, some := make([]float32, s.index.Dim()), make([]float32, s.index.Dim()), false
	for _, id := range ids {
		switch {
		case s.index.Vector(id, v):
			some = true
			for i := range v {
				mean[i] += v[i]
			}
		case !s.hasNoText(id):
			return nil, unknown(id)
		}
	}
	if !some || numeric.Normalize(mean) == 0 {
		return nil, nil
	}
	return mean, nil
}
