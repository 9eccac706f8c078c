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
	// parts of the orders by time: each is predicted from the others, the newest first, until maxAsked pairs are asked
	// for.
	parts = 5
	// maxAsked bounds the pairs of a part that are asked for, and maxItems the items that they are of: those with the
	// most orders.
	maxAsked = 10000
	maxItems = 1 << 16
	// minAsked pairs are needed to decide. A catalog whose parts link fewer anew is asked for a share of all its links,
	// which are drawn.
	minAsked = 100
	drawn    = 0.2
	// negatives is how many pairs each is ranked among.
	negatives = 100
	// significant is how many standard errors the gain of the view is at least. The best of several weights is asked,
	// and pairs of one item are not independent.
	significant = 3.5
)

// weights are those that are tried, beside the text alone. Larger ones would suit the projected text, which knows less
// of links than encoders.
var weights = [...]float32{0, 0.35, 0.7, 1, 1.4}

// weigh decides the weight of the view.
func weigh(ctx context.Context, t *work.Task, x graph.Numbering, o *orders) (s generation.BehaviourStats, err error) {
	a := answers{rule: graph.RuleOf(t.Doc.Settings.FromOrders, o.Incidence, t.Workers)}
	for part := parts - 1; part >= 0 && a.asked < maxAsked; part-- {
		rest, of, err := o.part(part)
		if err != nil {
			return s, err
		}
		if err := a.ask(ctx, t, x, rest, of); err != nil {
			return s, err
		}
	}
	if a.asked < minAsked {
		s.Drawn, a = true, answers{rule: a.rule}
		if err := a.ask(ctx, t, x, o.hidePairs(drawn, t.Doc.Settings.EvalSeed+1), o); err != nil {
			return s, err
		}
	}
	text := a.scores[0]
	if s.Asked = a.asked; s.Asked < minAsked || len(text) == 0 {
		return s, nil
	}
	best, most, stdErr := 0, 0.0, 0.0
	for k := range weights {
		if mean, e := eval.RankGain(a.scores[k], text, negatives); mean > most {
			best, most, stdErr = k, mean, e
		}
	}
	s.Text, s.With = text.Metrics(), a.scores[best].Metrics()
	if most > significant*stdErr {
		s.Weight = weights[best]
	}
	return s, nil
}

// answers are what pairs scored that were asked for, by each of the weights.
type answers struct {
	rule   pairs.Rule
	asked  int
	scores [len(weights)]eval.LinkScores
}

// ask asks for links of some orders that others do not have. Orders in which no two items are associated make no view.
func (a *answers) ask(ctx context.Context, t *work.Task, x graph.Numbering, known, of *orders) error {
	q := newQuestions(known, of, a.rule, t.Workers)
	if a.asked += len(q.asked); len(q.asked) == 0 {
		return nil
	}
	if err := q.readTexts(ctx, t, x); err != nil {
		return err
	}
	q.behaviour = make([]float32, len(q.items)*dim)
	_, err := known.eachRow(ctx, t, q.items, func(i int, row []float32) error {
		k, _ := slices.BinarySearch(q.items, int32(i))
		copy(q.behaviour[k*dim:], row)
		return nil
	})
	if errors.Is(err, projection.ErrNoData) {
		return nil
	}
	if err != nil {
		return err
	}
	for k, weight := range weights {
		scores, err := q.answer(t, weight)
		if errors.Is(err, eval.ErrNoLinks) {
			return nil
		}
		if err != nil {
			return err
		}
		a.scores[k] = append(a.scores[k], scores...)
	}
	return nil
}

// part returns the orders of a part, and all others.
func (o *orders) part(k int) (rest, of *orders, err error) {
	rest = &orders{Incidence: pairs.New(o.Items(), 0), hidden: o.hidden}
	of = &orders{Incidence: pairs.New(o.Items(), 0), hidden: o.hidden}
	ages := slices.SortedFunc(slices.Values(o.ages), age.compare)
	ages = ages[len(ages)*k/parts : len(ages)*(k+1)/parts]
	for number, a := range o.ages {
		to := rest
		if _, is := slices.BinarySearchFunc(ages, a, age.compare); is {
			to = of
		}
		if err := o.CopyOrder(int32(number), to.Incidence); err != nil {
			return nil, nil, err
		}
		to.customers = append(to.customers, o.customers[number])
	}
	return rest, of, nil
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
func (q *questions) answer(t *work.Task, weight float32) (eval.LinkScores, error) {
	n := q.textDim + dim
	views := make([]float32, len(q.items)*n)
	for k := range q.items {
		row := views[k*n : (k+1)*n]
		copy(row, q.texts[k*q.textDim:(k+1)*q.textDim])
		for i, v := range q.behaviour[k*dim : (k+1)*dim] {
			row[q.textDim+i] = weight * v
		}
	}
	return eval.ScoreLinks(views, n, q.known, q.asked,
		eval.LinkOptions{Negatives: negatives, Seed: t.Doc.Settings.EvalSeed, Workers: t.Workers})
}
