package filter

import "slices"

const (
	// mostKept is how many comparisons of an attribute are kept, each with a bit for a node.
	mostKept = 16
	// longestKept is how many bytes a comparison that is kept has at most: a list of values can have a megabyte.
	longestKept = 4096
)

// kept is a comparison that was asked, and the nodes that match it. Changes of attributes change it, so that a filter
// that is asked again, as most of a shop's are, reads no column.
type kept struct {
	comparison string // in the short form
	in         Set
	ranges     [][2]float64        // of numbers
	accepts    func(v *entry) bool // of all others
	texts      []string            // all that accepts accepts, if that is known
}

// nodes returns the nodes that match a comparison, to be read only.
func (c *column) nodes(e *Expr) (Set, error) {
	comparison := e.String()
	if k := c.recall(comparison); k != nil {
		return k.in, nil
	}
	k := &kept{comparison: comparison}
	var err error
	if c.numeric() {
		k.ranges, err = c.ranges(e)
	} else {
		k.accepts, k.texts, err = c.accepted(e)
	}
	if err != nil {
		return nil, err
	}
	k.fill(c)
	if len(comparison) <= longestKept {
		c.keep(k)
	}
	return k.in, nil
}

// recall returns a comparison that is kept, nil if it is not, and makes it the last to be forgotten.
func (c *column) recall(comparison string) *kept {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, k := range c.kept {
		if k.comparison == comparison {
			copy(c.kept[1:i+1], c.kept[:i])
			c.kept[0] = k
			return k
		}
	}
	return nil
}

// keep keeps a comparison, in the place of the one that was not asked for longest.
func (c *column) keep(k *kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(c.kept, func(other *kept) bool { return other.comparison == k.comparison }) {
		return // another question has kept it meanwhile
	}
	c.kept = slices.Insert(c.kept, 0, k)
	c.kept = c.kept[:min(len(c.kept), mostKept)]
}

// fill finds the nodes that match.
func (k *kept) fill(c *column) {
	k.in = make(Set, (max(len(c.numbers), len(c.codes))+63)/64)
	const few = 2 // ranges, for which a column is read again rather than a range sought for each number
	switch {
	case !c.numeric():
		k.in.accept(c.codes, k.codes(c))
	case len(k.ranges) <= few:
		for _, r := range k.ranges {
			k.in.addRange(c.numbers, r[0], r[1])
		}
	default:
		for n := range c.numbers {
			k.update(c, n)
		}
	}
}

// codes returns a one for each code of a value that matches.
func (k *kept) codes(c *column) []uint64 {
	accept := make([]uint64, len(c.entries))
	for _, text := range k.texts {
		if code, ok := c.code[text]; ok {
			accept[code] = 1
		}
	}
	if k.texts != nil {
		return accept
	}
	for i := range accept {
		if v := &c.entries[i]; v.nodes > 0 && k.accepts(v) {
			accept[i] = 1
		}
	}
	return accept
}

// update makes it true for a node whose attribute has changed.
func (k *kept) update(c *column, n int) {
	for n/64 >= len(k.in) {
		k.in = append(k.in, 0)
	}
	k.in[n/64] &^= 1 << (n % 64)
	if k.matches(c, n) {
		k.in[n/64] |= 1 << (n % 64)
	}
}

func (k *kept) matches(c *column, n int) bool {
	if !c.numeric() {
		return c.codes[n] != 0 && k.accepts(&c.entries[c.codes[n]])
	}
	x := c.numbers[n]
	i, _ := slices.BinarySearchFunc(k.ranges, x, func(r [2]float64, x float64) int {
		if r[1] < x {
			return -1
		}
		return 1
	})
	return i < len(k.ranges) && x >= k.ranges[i][0]
}
