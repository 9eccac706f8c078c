package main

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"giantstream/internal/graphdir"
	"giantstream/sink/rows"
	"giantstream/train"
	"giantstream/train/generation/eval"
)

// split is what a model is built of, and what it is asked.
type split struct {
	items    []string // those with a text: known ones, and then the new ones
	texts    []string
	known    int // items that are trained on
	training []*invoice
	// ripe says which of the known items the training invoices have, nil for all.
	ripe  map[string]bool
	asked []*invoice  // from the first day to the last
	links [][2]int32  // by the rule, of the training invoices
	later []eval.Edge // by the rule, of the later invoices, between known items
	cold  []eval.Edge // the same with a new item, which is Src
}

// divide makes the split: what comes before the first day trains, what comes from then on, before the last, is to be
// predicted.
func divide(invoices []*invoice, first, last time.Time) *split {
	s := &split{}
	for _, v := range invoices {
		switch {
		case v.time.Before(first):
			s.training = append(s.training, v)
		case v.time.Before(last):
			s.asked = append(s.asked, v)
		}
	}
	texts, added := textsOf(s.training), textsOf(s.asked)
	s.items = slices.Sorted(maps.Keys(texts))
	s.known = len(s.items)
	for _, code := range slices.Sorted(maps.Keys(added)) {
		if texts[code] == "" {
			s.items = append(s.items, code)
		}
	}
	for k, code := range s.items {
		if k < s.known {
			s.texts = append(s.texts, texts[code])
		} else {
			s.texts = append(s.texts, added[code])
		}
	}
	s.links = s.byRule(s.training)
	has := map[[2]int32]bool{}
	for _, l := range s.links {
		has[l] = true
	}
	for _, l := range s.byRule(s.asked) {
		switch {
		case has[l]:
		case int(l[1]) >= s.known: // ends ascend
			s.cold = append(s.cold, eval.Edge{Src: l[1], Dst: l[0]})
		default:
			s.later = append(s.later, eval.Edge{Src: l[0], Dst: l[1]})
		}
	}
	return s
}

// age keeps the invoices from a day on from what is trained. What is asked stays.
func (s *split) age(from time.Time) {
	s.training = slices.DeleteFunc(s.training, func(v *invoice) bool { return !v.time.Before(from) })
	s.ripe = map[string]bool{}
	for code := range textsOf(s.training) {
		s.ripe[code] = true
	}
}

// thin leaves some items of each invoice that is trained, and a share of these invoices, as a shop of smaller baskets
// or of fewer customers would have them. They are drawn. What is asked stays.
func (s *split) thin(most int, share float64) {
	random := rand.New(rand.NewPCG(1, 1))
	s.training = slices.DeleteFunc(s.training, func(*invoice) bool { return random.Float64() >= share })
	for k, v := range s.training {
		if len(v.items) > most {
			less := *v
			less.items = slices.Clone(v.items)
			random.Shuffle(len(less.items), func(i, j int) {
				less.items[i], less.items[j] = less.items[j], less.items[i]
			})
			less.items = less.items[:most]
			slices.Sort(less.items)
			s.training[k] = &less
		}
	}
	s.links = s.byRule(s.training)
}

// numbers returns the numbers of items, ascending, without those that have no text.
func (s *split) numbers(codes []string) (out []int32) {
	for _, code := range codes {
		for _, part := range [][2]int{{0, s.known}, {s.known, len(s.items)}} {
			if k, found := slices.BinarySearch(s.items[part[0]:part[1]], code); found {
				out = append(out, int32(part[0]+k))
			}
		}
	}
	slices.Sort(out)
	return out
}

// byRule links items as ../shared/data/online-retail has it: pairs of at least 5 invoices of 2 to 60 items with a
// normalised PMI of at least 0.3, the 10 best of each item.
func (s *split) byRule(invoices []*invoice) [][2]int32 {
	const least, most, minSupport, minNPMI, best = 2, 60, 5, 0.3, 10
	type score struct {
		other int32
		npmi  float64
	}
	all, single, both := 0, make([]int, len(s.items)), map[[2]int32]int{}
	for _, v := range invoices {
		items := s.numbers(v.items)
		if len(items) < least || len(items) > most {
			continue
		}
		all++
		for k, i := range items {
			single[i]++
			for _, j := range items[k+1:] {
				both[[2]int32{i, j}]++
			}
		}
	}
	partners := make([][]score, len(s.items))
	for l, n := range both {
		p := float64(n) / float64(all)
		npmi := math.Log(p*float64(all)/float64(single[l[0]])*float64(all)/float64(single[l[1]])) / -math.Log(p)
		if n >= minSupport && npmi >= minNPMI {
			partners[l[0]] = append(partners[l[0]], score{l[1], npmi})
			partners[l[1]] = append(partners[l[1]], score{l[0], npmi})
		}
	}
	kept := map[[2]int32]bool{}
	for i, row := range partners {
		slices.SortFunc(row, func(a, b score) int {
			return cmp.Or(cmp.Compare(b.npmi, a.npmi), cmp.Compare(a.other, b.other))
		})
		for _, p := range row[:min(best, len(row))] {
			kept[[2]int32{min(int32(i), p.other), max(int32(i), p.other)}] = true
		}
	}
	return slices.SortedFunc(maps.Keys(kept), func(a, b [2]int32) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
}

// rows are the known items with the links of the rule, or without any.
func (s *split) rows(linked bool) (all []rows.Row) {
	links := s.links
	if s.ripe != nil {
		links = s.byRule(s.training)
	}
	near := graphdir.Undirected(len(s.items), links)
	for i := range s.known {
		if s.ripe != nil && !s.ripe[s.items[i]] {
			continue
		}
		r := rows.Row{NodeID: s.items[i], Text: s.texts[i]}
		for _, j := range near.Row(i).Index {
			if linked {
				r.Labels = append(r.Labels, s.items[j])
			}
		}
		all = append(all, r)
	}
	return all
}

// orders are the training invoices.
func (s *split) orders() (all []rows.Order) {
	for _, v := range s.training {
		all = append(all, rows.Order{OrderID: v.number, Time: v.time.UnixMicro(), Customer: v.customer, Items: v.items})
	}
	return all
}

// graph is that which questions are drawn from: by the rule, whatever a model was built of.
func (s *split) graph() *train.Graph {
	return &train.Graph{IDs: s.items, Neighbours: graphdir.Undirected(len(s.items), s.links)}
}
