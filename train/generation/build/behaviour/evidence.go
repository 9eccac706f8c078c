package behaviour

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"giantstream/featurize/pairs"
	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/generation"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/vocabulary"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/eval"
	"giantstream/train/numeric"
)

const (
	// newest is the share of the orders that the weight is decided on.
	newest = 0.2
	// maxAsked bounds the pairs that are asked for, and maxItems the items that they are of: those of the most orders.
	maxAsked = 10000
	maxItems = 1 << 16
	// minAsked pairs are needed to decide. A catalog whose newest orders link fewer anew is asked for a share of all
	// its links, which are drawn.
	minAsked = 100
	drawn    = 0.2
)

// weights are those that are tried. Larger ones would suit the projected text, which knows less of links than encoders.
var weights = []float32{0.35, 0.7, 1, 1.4}

// weigh decides the weight of the view.
func weigh(ctx context.Context, t *work.Task, x graph.Numbering, o *orders) (s generation.BehaviourStats, err error) {
	early, late, err := o.split()
	if err != nil {
		return s, err
	}
	rule := graph.RuleOf(t.Doc.Settings.FromOrders, o.Incidence, t.Workers)
	q := newQuestions(early, late, rule, t.Workers)
	if len(q.asked) < minAsked {
		s.Drawn = true
		early, late = o.hidePairs(drawn, t.Doc.Settings.EvalSeed+1), o
		q = newQuestions(early, late, rule, t.Workers)
	}
	if s.Asked = len(q.asked); s.Asked < minAsked {
		return s, nil
	}
	if err := q.readTexts(ctx, t, x); err != nil {
		return s, err
	}
	q.behaviour = make([]float32, len(q.items)*dim)
	_, err = early.eachRow(ctx, t, q.items, func(i int, row []float32) error {
		k, _ := slices.BinarySearch(q.items, int32(i))
		copy(q.behaviour[k*dim:], row)
		return nil
	})
	if errors.Is(err, projection.ErrNoData) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	text, err := q.answer(t, 0)
	if err != nil {
		return s, err
	}
	s.Text = text
	best := text
	for _, w := range weights {
		with, err := q.answer(t, w)
		if err != nil {
			return s, err
		}
		if with.AUC+with.MRR > best.AUC+best.MRR {
			best, s.Weight = with, w
		}
	}
	s.With = best
	if best.AUC < text.AUC+text.AUCStdErr && best.MRR < text.MRR+text.MRRStdErr {
		s.Weight = 0
	}
	return s, nil
}

// split returns the orders without the newest, and the newest alone.
func (o *orders) split() (early, late *orders, err error) {
	early = &orders{Incidence: pairs.New(o.Items(), 0), hidden: o.hidden}
	late = &orders{Incidence: pairs.New(o.Items(), 0), hidden: o.hidden}
	if len(o.times) == 0 {
		return early, late, nil
	}
	times := slices.Sorted(slices.Values(o.times))
	last := times[int(float64(len(times)-1)*(1-newest))]
	for number, at := range o.times {
		to := early
		if at > last {
			to = late
		}
		if err := o.CopyOrder(int32(number), to.Incidence); err != nil {
			return nil, nil, err
		}
		to.customers = append(to.customers, o.customers[number])
	}
	return early, late, nil
}

// hidePairs returns the same orders, with a share of the pairs hidden besides.
func (o *orders) hidePairs(share float64, seed uint64) *orders {
	more := o.hide(share, seed)
	return &orders{Incidence: o.Incidence, customers: o.customers, hidden: func(i, j int32) bool {
		return o.hidden(i, j) || more(i, j)
	}}
}

// questions are pairs that only the late orders link.
type questions struct {
	items     []int32 // positions, ascending
	known     *train.Graph
	asked     []eval.Edge
	texts     []float32
	textDim   int
	behaviour []float32
}

// newQuestions asks for links of the late orders that early ones do not have, by the rule that links are made by.
func newQuestions(early, late *orders, rule pairs.Rule, workers int) *questions {
	q := &questions{}
	for i := range int32(early.Items()) {
		if early.Support(i) > 0 {
			q.items = append(q.items, i)
		}
	}
	if len(q.items) > maxItems {
		slices.SortStableFunc(q.items, func(a, b int32) int { return early.Support(b) - early.Support(a) })
		q.items = q.items[:maxItems]
		slices.Sort(q.items)
	}
	known := make([][]int32, len(q.items))
	q.eachLink(early, workers, rule, func(a, b int32) {
		known[a], known[b] = append(known[a], b), append(known[b], a)
	})
	neighbours := &sparse.Matrix{Cols: len(q.items), Start: []int64{0}}
	for k := range known {
		slices.Sort(known[k])
		known[k] = slices.Compact(known[k])
		neighbours.Append(sparse.Vector{Index: known[k], Value: make([]float32, len(known[k]))})
	}
	q.known = &train.Graph{IDs: make([]string, len(q.items)), Neighbours: neighbours}
	q.eachLink(late, workers, rule, func(a, b int32) {
		if _, is := slices.BinarySearch(known[a], b); !is {
			q.asked = append(q.asked, eval.Edge{Src: min(a, b), Dst: max(a, b)})
		}
	})
	slices.SortFunc(q.asked, func(a, b eval.Edge) int {
		return cmp.Or(cmp.Compare(a.Src, b.Src), cmp.Compare(a.Dst, b.Dst))
	})
	q.asked = slices.Compact(q.asked)
	if n := len(q.asked); n > maxAsked {
		for k := range maxAsked {
			q.asked[k] = q.asked[k*n/maxAsked]
		}
		q.asked = q.asked[:maxAsked]
	}
	return q
}

// eachLink calls visit with the numbers of two items, for each link.
func (q *questions) eachLink(o *orders, workers int, rule pairs.Rule, visit func(a, b int32)) {
	counters := o.NewCounters(workers)
	for lo := 0; lo < len(q.items); lo += chunk {
		hi := min(len(q.items), lo+chunk)
		for k, partners := range counters.PartnersOf(q.items[lo:hi], rule) {
			for _, p := range partners {
				if b, ok := slices.BinarySearch(q.items, p.Item); ok && !o.hidden(q.items[lo+k], p.Item) {
					visit(int32(lo+k), int32(b))
				}
			}
		}
	}
}

// readTexts reads the projected texts of the items.
func (q *questions) readTexts(ctx context.Context, t *work.Task, x graph.Numbering) (err error) {
	if q.textDim, err = vocabulary.FeatureDim(ctx, t.Build); err != nil {
		return err
	}
	q.texts = make([]float32, len(q.items)*q.textDim)
	for p := range t.Plan.Partitions {
		if err := q.readTextsOf(ctx, t, x, p); err != nil {
			return err
		}
	}
	numeric.NormalizeRows(q.texts, q.textDim)
	return nil
}

func (q *questions) readTextsOf(ctx context.Context, t *work.Task, x graph.Numbering, p int) error {
	first, _ := slices.BinarySearch(q.items, int32(x.Base[p]))
	end, _ := slices.BinarySearch(q.items, int32(x.Base[p+1]))
	if first == end {
		return nil
	}
	texts, err := vocabulary.OpenProjected(ctx, t.Build, p, q.textDim)
	if err != nil {
		return err
	}
	defer texts.Close()
	for k := first; k < end; k++ {
		row, err := texts.RowOf(int(q.items[k]) - x.Base[p])
		if err != nil {
			return err
		}
		copy(q.texts[k*q.textDim:], row)
	}
	return nil
}

// answer ranks the pairs by text and behaviour side by side.
func (q *questions) answer(t *work.Task, weight float32) (eval.LinkMetrics, error) {
	n := q.textDim + dim
	views := make([]float32, len(q.items)*n)
	for k := range q.items {
		row := views[k*n : (k+1)*n]
		copy(row, q.texts[k*q.textDim:(k+1)*q.textDim])
		for i, v := range q.behaviour[k*dim : (k+1)*dim] {
			row[q.textDim+i] = weight * v
		}
	}
	return eval.Links(views, n, q.known, q.asked, eval.LinkOptions{Seed: t.Doc.Settings.EvalSeed, Workers: t.Workers})
}
