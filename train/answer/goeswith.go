package answer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"giantstream/train/generation"
	"giantstream/train/numeric"
)

// textShare is how much the cosine with the mean of the asked nodes counts beside the scores of orders
// (docs/measurements/2026-11-26.md).
const textShare = 0.1

// Basket is what goes with a basket of nodes, the highest score first.
type Basket struct {
	Generation int64
	Items      []Complement
	Filtered   *Filtered // as of Nearest
}

// Complement goes with a basket.
type Complement struct {
	ID string
	// Score is the sum of what the nodes of the basket say, and 0.1 times the cosine with the mean of their embeddings.
	Score float64
	// Support is how many orders have the node and one of the basket, counted for each of the basket.
	Support int64
	// Partner is the node of the basket that says it most, "" where texts alone say it.
	Partner string
	// Because has the parts of the score, nil if they were not asked for.
	Because    *Because
	Attributes map[string]any // as of a Neighbour
	best       float32
}

// Because has the parts of a score: what nodes of the basket say, by id, and the share of the cosine. Added up in this
// order they are the score, to the last bit.
type Because struct {
	Orders []Reason `json:"orders"`
	Text   float64  `json:"text"`
}

// Reason is what a node of a basket says of another.
type Reason struct {
	ID      string  `json:"id"`
	Score   float64 `json:"score"`
	Support int64   `json:"support"` // orders that have both
}

// GoesWith returns the nodes that go best with a basket of nodes, each of which counts once. Errors are those of
// Similar, and generation.ErrNoOrders.
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
	p, err := s.pool(basket, &w)
	if err != nil {
		return Basket{}, err
	}
	p.lengths = s.beside.lengths(s.has(likeEach(basket), ""))
	found := s.complements.complete(basket, w.Explain)
	if len(found) == 0 && mean == nil {
		return Basket{}, fmt.Errorf("none of the %d nodes is in an order with another, and they have %w", len(basket),
			ErrNoText)
	}
	all, against := make([]Complement, 0, len(found)), map[string]bool{}
	for id, one := range found {
		if p.has(id) {
			all = append(all, *one)
		}
		if one.Score < 0 {
			against[id] = true
		}
	}
	// Of the others the nearest are enough: what orders speak for comes before what is as near.
	for _, n := range p.excluding(against).nearest(mean, w.Offset+w.K) {
		if found[n.ID] == nil {
			all = append(all, newComplement(n.ID, w.Explain))
		}
	}
	v := make([]float32, s.index.Dim())
	for i := range all {
		if one := &all[i]; mean != nil && s.index.Vector(one.ID, v) {
			share := textShare * min(1, numeric.Cosine(v, mean)*float64(p.lengthOf(one.ID)))
			if one.Score += share; one.Because != nil {
				one.Because.Text = share
			}
		}
	}
	slices.SortFunc(all, func(a, b Complement) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.ID, b.ID))
	})
	all = p.best(all, w.Offset+w.K)
	all = all[min(w.Offset, len(all)):]
	for i := range all {
		all[i].Attributes = s.show(all[i].ID, &w)
	}
	return Basket{number, all, p.filtered(&w)}, nil
}

// likeEach asks about each node of a basket.
func likeEach(basket []string) []Like {
	like := make([]Like, len(basket))
	for k, id := range basket {
		like[k] = Like{ID: id, Weight: 1}
	}
	return like
}

func newComplement(id string, explain bool) Complement {
	c := Complement{ID: id, best: -math.MaxFloat32}
	if explain {
		c.Because = &Because{Orders: []Reason{}}
	}
	return c
}

// best returns the first n that are wanted, of all in order.
func (p *pool) best(all []Complement, n int) []Complement {
	if p.distinct != "" {
		seen, _ := p.attributes.Distinct(p.distinct) // pool has checked the name
		kept := all[:0]
		for _, one := range all {
			if h, _ := p.index.Handle(one.ID); len(kept) < n && seen.Add(h) {
				kept = append(kept, one)
			}
		}
		all = kept
	}
	return all[:min(n, len(all))]
}

// complete adds up the rows of a basket.
func (c *complements) complete(basket []string, explain bool) map[string]*Complement {
	c.mu.RLock()
	defer c.mu.RUnlock()
	found := map[int32]*Complement{}
	for _, id := range basket {
		p, ok := c.number[id]
		if !ok {
			continue
		}
		for _, row := range c.says[p] {
			one := found[row.item]
			if one == nil {
				one = new(newComplement(c.ids[row.item], explain))
				found[row.item] = one
			}
			one.Score += float64(row.score)
			one.Support += int64(row.support)
			if explain {
				one.Because.Orders = append(one.Because.Orders, Reason{id, float64(row.score), int64(row.support)})
			}
			if row.score > one.best {
				one.best, one.Partner = row.score, id
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
		default:
			if _, known := s.index.Handle(id); !known {
				return nil, unknown(id)
			}
		}
	}
	if !some || numeric.Normalize(mean) == 0 {
		return nil, nil
	}
	return mean, nil
}
