// Package completion measures what completes orders: of each order, one item is hidden, and the others, or one of
// them, are asked what goes with them.
package completion

import (
	"math"
	"slices"

	"giantstream/featurize/pairs"
	"giantstream/internal/parallel"
	"giantstream/train/numeric"
)

// At is how many answers may have the hidden item.
const At = 10

// MaxQuestions is how many orders are asked about at most.
const MaxQuestions = 5000

// Question is an order with an item hidden.
type Question struct {
	// Asked are the other items, One is one of them.
	Asked []int32
	One   int32
	// Hidden is the item to be found, which may be below 0: then it is not known, and not found.
	Hidden int32
}

// Questions draws a question of each order that has two items or more, of MaxQuestions of them at most, at equal
// distances. Items below 0 are not known. Orders of which nothing known is left to ask ask nothing, and count.
func Questions(orders [][]int32, seed uint64) (all []Question) {
	orders = slices.DeleteFunc(slices.Clone(orders), func(o []int32) bool { return len(o) < 2 })
	r := numeric.NewRand(seed, 'C')
	n := min(len(orders), MaxQuestions)
	for k := range n {
		o := orders[k*len(orders)/n]
		at := r.IntN(len(o))
		q := Question{Hidden: o[at], One: -1}
		rest := slices.Delete(slices.Clone(o), at, at+1)
		one := rest[r.IntN(len(rest))]
		q.One, q.Asked = one, slices.DeleteFunc(rest, func(i int32) bool { return i < 0 })
		all = append(all, q)
	}
	return all
}

// Method answers questions.
type Method struct {
	Name string
	// Score adds the score of each item for those asked about. It is called from several goroutines.
	Score func(asked []int32, scores []float64)
}

// Figures are what a method found.
type Figures struct {
	Method string `json:"method"`
	// All is the share of the questions whose hidden item is among the At best, asked by all other items, One by one.
	All float64 `json:"recall_by_all"`
	One float64 `json:"recall_by_one"`
}

// Recall asks methods about items.
func Recall(questions []Question, items int, methods []Method, workers int) (out []Figures) {
	for _, m := range methods {
		out = append(out, Figures{m.Name,
			recall(questions, items, m, workers, func(q *Question) []int32 { return q.Asked }),
			recall(questions, items, m, workers, func(q *Question) []int32 {
				if q.One < 0 {
					return nil
				}
				return []int32{q.One}
			})})
	}
	return out
}

func recall(questions []Question, items int, m Method, workers int, asked func(*Question) []int32) float64 {
	workers = parallel.Workers(workers)
	hits, scores := make([]int, workers), make([][]float64, workers)
	parallel.ForEach(len(questions), 1, workers, func(w, _, lo, _ int) {
		q := &questions[lo]
		of := asked(q)
		if q.Hidden < 0 || len(of) == 0 {
			return
		}
		if scores[w] == nil {
			scores[w] = make([]float64, items)
		}
		s := scores[w]
		clear(s)
		m.Score(of, s)
		if found(s, of, q.Hidden) {
			hits[w]++
		}
	})
	sum := 0
	for _, n := range hits {
		sum += n
	}
	return float64(sum) / float64(max(1, len(questions)))
}

// found says whether an item is among the At best but for those asked about. Of equal scores, the smaller item is
// better. One that nothing was said of is not found.
func found(scores []float64, asked []int32, hidden int32) bool {
	of := scores[hidden]
	if of == 0 {
		return false
	}
	for _, i := range asked {
		scores[i] = math.Inf(-1)
	}
	better := 0
	for i, s := range scores {
		if s > of || s == of && i < int(hidden) {
			better++
		}
	}
	return better < At
}

// Popularity scores items by the number of their orders.
func Popularity(x *pairs.Incidence) Method {
	return Method{"popularity", func(_ []int32, scores []float64) {
		for i := range scores {
			scores[i] += float64(x.Support(int32(i)))
		}
	}}
}

// list is what an item says: how much for which.
type list []said

type said struct {
	item  int32
	score float64
}

// byList is a method of lists, by item.
func byList(name string, lists map[int32]list) Method {
	return Method{name, func(asked []int32, scores []float64) {
		for _, i := range asked {
			for _, s := range lists[i] {
				scores[s.item] += s.score
			}
		}
	}}
}

// askedOf are the items that questions ask.
func askedOf(questions []Question) map[int32]list {
	all := map[int32]list{}
	for _, q := range questions {
		for _, i := range q.Asked {
			all[i] = nil
		}
	}
	return all
}

// Cosine scores items by the sum of the cosines of counts.
func Cosine(x *pairs.Incidence, questions []Question) Method {
	lists, c := askedOf(questions), x.NewCounter()
	for i := range lists {
		for _, p := range c.Partners(i, pairs.Rule{Measure: pairs.Cosine, MinSupport: 1}, nil) {
			lists[i] = append(lists[i], said{p.Item, p.Association})
		}
	}
	return byList("cosine of the counts", lists)
}

// Ridge scores items as goes-with.parquet does.
func Ridge(x *pairs.Incidence, questions []Question, o pairs.Ridge, workers int) Method {
	const bytes = 256 << 20
	items, lists := make([]int32, x.Items()), askedOf(questions)
	for i := range items {
		items[i] = int32(i)
	}
	for i, hints := range x.NewCounters(workers).AllRidges(items, o, bytes) {
		for _, h := range hints {
			if of, ok := lists[h.Partner]; ok {
				lists[h.Partner] = append(of, said{i, h.Weight})
			}
		}
	}
	return byList("goes-with", lists)
}

// WithTexts adds to a method a share of the cosine with the mean of the vectors of those asked about, as an answer of
// goes-with does. vectors has a row of dim numbers for each item; one of zeros has no cosine.
func WithTexts(m Method, name string, share float64, vectors []float32, dim int) Method {
	unit := slices.Clone(vectors)
	numeric.NormalizeRows(unit, dim)
	return Method{name, func(asked []int32, scores []float64) {
		m.Score(asked, scores)
		mean := make([]float32, dim)
		for _, i := range asked {
			for k, v := range unit[int(i)*dim : (int(i)+1)*dim] {
				mean[k] += v
			}
		}
		numeric.Normalize(mean)
		for i := range scores {
			scores[i] += share * float64(numeric.Dot(unit[i*dim:(i+1)*dim], mean))
		}
	}}
}
