package pairs

import (
	"cmp"
	"math"
	"slices"

	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
)

const (
	// enough is how many orders have both items of a pair that counts in full: fewer may be chance.
	enough = 5
	// contextPower makes rare items more frequent than they are, since the mutual information of rare ones is
	// overstated (Levy, Goldberg and Dagan, "Improving distributional similarity", 2015, 3.2).
	contextPower = 0.75
)

// Association is how much more often than by chance items come together: a symmetric matrix. Of the pairs of an
// Incidence, p_ij is the share of the weight of all pairs, p_i that of the pairs with i, and q_i the same of p_i^¾:
//
//	a_ij = max(0, ln(p_ij / √(p_i·q_j·p_j·q_i))) · min(1, n_ij/5)
//
// where n_ij orders have both. It adds up those of several incidences: of orders, say, and of all that a customer has
// ordered. It sees no later changes of them until it is renewed.
type Association struct {
	parts  []associated
	makers []*rowMaker // one for each goroutine, which take 12 bytes an item for each part, and 8
}

type associated struct {
	x *Incidence
	// chance of each item is √(p_i·q_i).
	chance []float64
}

// NewAssociation returns the association in incidences of the same items.
func NewAssociation(of ...*Incidence) *Association {
	a := &Association{}
	for _, x := range of {
		a.parts = append(a.parts, associated{x: x})
	}
	a.renew()
	return a
}

// renew takes all items as they are now.
func (a *Association) renew() {
	for k := range a.parts {
		a.parts[k].renew()
	}
}

// shareUnit is what shares are multiplied by to be added up as integers, of which the order changes no sum.
const shareUnit = 1 << 50

func (a *associated) renew() {
	x := a.x
	a.chance = append(a.chance[:0], make([]float64, len(x.of))...)
	var sum int64
	for i, w := range x.paired {
		if w > 0 && x.isCounted(int32(i)) {
			a.chance[i] = float64(w) / float64(x.pairs)
			sum += int64(math.Round(math.Pow(a.chance[i], contextPower) * shareUnit))
		}
	}
	for i, p := range a.chance {
		a.chance[i] = math.Sqrt(p * math.Pow(p, contextPower) / (float64(sum) / shareUnit))
	}
}

// score returns the association of two items that come together.
func (a *associated) score(i, j, orders int32, weight int64) float64 {
	information := math.Log(float64(weight) / float64(a.x.pairs) / (a.chance[i] * a.chance[j]))
	return max(0, information) * min(1, float64(orders)/enough)
}

// Rows returns the rows of some items, each with its most largest entries. What hidden says of a pair is left out. It
// is called for i and j as well as for j and i, on several goroutines, whose number changes nothing. Calls of Rows come
// one after the other.
func (a *Association) Rows(items []int32, most, workers int, hidden func(i, j int32) bool) []sparse.Vector {
	workers = parallel.Workers(workers)
	for len(a.makers) < workers {
		a.makers = append(a.makers, a.newRowMaker())
	}
	rows := make([]sparse.Vector, len(items))
	parallel.ForEach(len(items), block, workers, func(worker, _, from, to int) {
		for k := from; k < to; k++ {
			rows[k] = a.makers[worker].row(items[k], most, hidden)
		}
	})
	return rows
}

// rowMaker makes rows on one goroutine.
type rowMaker struct {
	*Association
	counters []*Counter
	sums     []float64 // of each item, 0 but for those met
	met      []int32
	kept     []entry
}

type entry struct {
	item  int32
	value float64
}

// compare has larger values first, and of equal ones the item that comes first.
func (m *rowMaker) compare(a, b entry) int {
	return cmp.Or(cmp.Compare(b.value, a.value), m.parts[0].x.order(a.item, b.item))
}

func (a *Association) newRowMaker() *rowMaker {
	m := &rowMaker{Association: a}
	for _, p := range a.parts {
		m.counters = append(m.counters, p.x.NewCounter())
	}
	return m
}

func (m *rowMaker) row(i int32, most int, hidden func(i, j int32) bool) sparse.Vector {
	x := m.parts[0].x
	if !x.isCounted(i) {
		return sparse.Vector{}
	}
	if n := x.Items() - len(m.sums); n > 0 {
		m.sums = append(m.sums, make([]float64, n)...)
	}
	for k, c := range m.counters {
		c.count(i)
		for _, j := range c.met {
			n, w := c.take(j)
			if j == i || !x.isCounted(j) {
				continue
			}
			if v := m.parts[k].score(i, j, n, w); v > 0 {
				if m.sums[j] == 0 {
					m.met = append(m.met, j)
				}
				m.sums[j] += v
			}
		}
		c.met = c.met[:0]
	}
	m.keep(i, most, hidden)
	slices.SortFunc(m.kept, func(a, b entry) int { return x.order(a.item, b.item) })
	v := sparse.Vector{Index: make([]int32, len(m.kept)), Value: make([]float32, len(m.kept))}
	for k, e := range m.kept {
		v.Index[k], v.Value[k] = e.item, float32(e.value)
	}
	return v
}

// keep takes the largest of the sums of item i that are not hidden, and forgets all. An item may have met many times
// more than are kept, so it sorts few of them, and asks of no others whether they are hidden.
func (m *rowMaker) keep(i int32, most int, hidden func(i, j int32) bool) {
	m.kept = m.kept[:0]
	cut := func() {
		slices.SortFunc(m.kept, m.compare)
		m.kept = m.kept[:min(most, len(m.kept))]
	}
	var last *entry // no later one is kept
	for _, j := range m.met {
		e := entry{j, m.sums[j]}
		m.sums[j] = 0
		if last != nil && m.compare(e, *last) > 0 || hidden(i, j) {
			continue
		}
		if m.kept = append(m.kept, e); len(m.kept) == 2*most {
			cut()
			last = new(m.kept[most-1])
		}
	}
	m.met = m.met[:0]
	cut()
}
