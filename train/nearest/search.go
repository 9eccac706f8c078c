package nearest

import (
	"cmp"
	"slices"

	"giantstream/train/numeric"
)

// Neighbour is a vector found near a query.
type Neighbour struct {
	ID     string
	Cosine float32
}

// Search returns the k vectors that have the highest cosine with a query, best first. except names an id that is
// not an answer, "" for none. A query of length 0 has no cosine with anything, and no answer.
func (x *Index) Search(query []float32, k int, except string) []Neighbour {
	unit := slices.Clone(query)
	if k <= 0 || len(query) != x.dim || numeric.Normalize(unit) == 0 {
		return nil
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.search(unit, k, except, x.best(unit, x.probes))
}

// search looks into some cells.
func (x *Index) search(unit []float32, k int, except string, cells []int32) []Neighbour {
	query := make([]int16, x.width)
	scale := round(query, unit)
	found := top{k: min(k, len(x.handle))}
	var sums [blockRows]int32
	for _, c := range cells {
		left := int(x.cells[c].n)
		for _, b := range x.cells[c].blocks {
			rows := min(left, blockRows)
			left -= rows
			products(sums[:rows], query, b.codes)
			for r, sum := range sums[:rows] {
				score := float32(sum) * (b.scales[r] * scale)
				if found.full() && score < found.heap[0].Cosine {
					continue
				}
				if id := x.ids[b.handles[r]]; id != except {
					found.add(Neighbour{id, score})
				}
			}
		}
	}
	slices.SortFunc(found.heap, compare)
	return found.heap
}

// compare orders neighbours: the better first.
func compare(a, b Neighbour) int {
	return cmp.Or(cmp.Compare(b.Cosine, a.Cosine), cmp.Compare(a.ID, b.ID))
}

// top keeps the k best neighbours, the worst of them first (a heap).
type top struct {
	k    int
	heap []Neighbour
}

func (t *top) full() bool { return len(t.heap) == t.k }

func (t *top) add(n Neighbour) {
	switch {
	case !t.full():
		t.heap = append(t.heap, n)
		for i := len(t.heap) - 1; i > 0; {
			parent := (i - 1) / 2
			if compare(t.heap[i], t.heap[parent]) <= 0 {
				break
			}
			t.heap[i], t.heap[parent] = t.heap[parent], t.heap[i]
			i = parent
		}
	case compare(n, t.heap[0]) < 0:
		t.heap[0] = n
		for i := 0; ; {
			worst := i
			for child := 2*i + 1; child <= 2*i+2 && child < t.k; child++ {
				if compare(t.heap[child], t.heap[worst]) > 0 {
					worst = child
				}
			}
			if worst == i {
				break
			}
			t.heap[i], t.heap[worst] = t.heap[worst], t.heap[i]
			i = worst
		}
	}
}
