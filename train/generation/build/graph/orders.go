package graph

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"giantstream/featurize/pairs"
	"giantstream/internal/parallel"
	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/eval"
	"giantstream/train/generation/fit"
)

// orderedBytes of a link: source u32 within its partition, position u32.
const orderedBytes = 8

// ordered is a link to a node that is ordered together with its source. Its position has hiddenBit if the evaluation
// hides the link.
type ordered struct{ source, position uint32 }

// target is the position without hiddenBit.
func (l ordered) target() uint32 { return l.position &^ hiddenBit }

// LinkOrders links nodes that are ordered together. It holds all orders in memory.
//
//	links  section p: links of the nodes of partition p, of orderedBytes each. A link may stand there twice
func LinkOrders(ctx context.Context, t *work.Task) error {
	x, err := LoadNumbering(ctx, t.Build)
	if err != nil {
		return err
	}
	keys, err := readKeys(ctx, t)
	if err != nil {
		return err
	}
	s := &generation.OrderStats{}
	orders, err := readOrders(ctx, t, x, keys, s, nil)
	if err != nil {
		return err
	}
	l := linker{Task: t, x: x, keys: keys, out: t.NewSections(t.Plan.Partitions)}
	defer l.out.Close() //nolint:errcheck // a temporary file
	rule := RuleOf(t.Doc.Settings.FromOrders, orders, t.Workers)
	s.MinSupport = rule.MinSupport
	counters := orders.NewCounters(countersFor(t.Workers, t.MemoryLimit, orders.CounterBytes()))
	for p := range t.Plan.Partitions {
		err := l.link(p, counters.Partners(x.Base[p], x.Base[p+1], rule))
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	s.Pairs = int(counters.Counted() / 2)
	for i := range orders.Items() {
		if orders.Support(int32(i)) > 0 {
			s.Items++
		}
	}
	t.Stats = s
	return t.PutSections(ctx, "links", l.out)
}

// Hide returns which pairs of nodes are hidden, a share of them that the seed draws by their ids.
type Hide func(share float64, seed uint64) (hidden func(i, j int32) bool)

// ReadOrders reads the orders of the cut whose pairs are counted, and calls each with the number of every order. What
// the evaluation hides is hide's of its share and seed.
func ReadOrders(ctx context.Context, t *work.Task, each func(number int32, r *rows.Order)) (orders *pairs.Incidence,
	hide Hide, err error) {
	x, err := LoadNumbering(ctx, t.Build)
	if err != nil {
		return nil, nil, err
	}
	keys, err := readKeys(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	hide = func(share float64, seed uint64) func(i, j int32) bool {
		return func(i, j int32) bool {
			return share > 0 && eval.Hide(keys.hash(x, int(i)), keys.hash(x, int(j)), share, seed)
		}
	}
	orders, err = readOrders(ctx, t, x, keys, &generation.OrderStats{}, each)
	return orders, hide, err
}

// readOrders reads the orders of the cut, until they take more memory than there is.
func readOrders(ctx context.Context, t *work.Task, x Numbering, keys nodeKeys, s *generation.OrderStats,
	each func(number int32, r *rows.Order)) (*pairs.Incidence, error) {
	log, err := t.Log(ctx, t.Doc.Cut)
	if err != nil {
		return nil, err
	}
	orders := pairs.New(x.Nodes(), 0)
	var items []int32
	for shard := range t.Plan.Shards {
		for r, err := range log.Orders(ctx, shard) {
			if err != nil {
				return nil, err
			}
			if r.Deleted || len(r.Items) == 0 {
				continue
			}
			items = items[:0]
			for _, id := range r.Items {
				if at, ok := keys.find(x, id); ok {
					items = append(items, int32(at))
				}
			}
			slices.Sort(items)
			number, err := orders.Add(slices.Compact(items), len(r.Items))
			if err != nil {
				return nil, fmt.Errorf("order %q: %w", r.OrderID, err)
			}
			if each != nil {
				each(number, &r)
			}
			s.Orders++
			s.Lines += len(r.Items)
			s.Unknown += len(r.Items) - len(items)
			if len(r.Items) > pairs.DefaultMaxItems {
				s.Large++
			}
			if limit := t.MemoryLimit; limit > 0 && orders.MemoryBytes() > limit {
				return nil, fmt.Errorf("%d orders of %d items take more than featurize.memory_limit, %d bytes: "+
					"raise it, or set links.from_orders.max_partners: 0 to make no links of orders", s.Orders,
					s.Lines, limit)
			}
		}
	}
	return orders, nil
}

// linker makes links of partners.
type linker struct {
	*work.Task
	x    Numbering
	keys nodeKeys
	out  *sections.Writer
	b    []byte
}

// add adds a link of a node of partition p.
func (l *linker) add(p int, link ordered) error {
	l.b = binary.LittleEndian.AppendUint32(l.b[:0], link.source)
	l.b = binary.LittleEndian.AppendUint32(l.b, link.position)
	return l.out.Add(p, l.b)
}

// RuleOf is the rule that says which items orders link, settled on these orders.
func RuleOf(o *fit.FromOrders, orders *pairs.Incidence, workers int) pairs.Rule {
	return orders.Settle(pairs.Rule{Measure: o.Measure, MinSupport: o.MinSupport, MinAssociation: o.MinAssociation,
		MaxPartners: o.MaxPartners}, workers)
}

// countersFor is how many of some goroutines, 0 for one per CPU, can count pairs within an eighth of the memory.
func countersFor(workers int, memory, counterBytes int64) int {
	workers = parallel.Workers(workers)
	if memory <= 0 {
		return workers
	}
	return int(min(int64(workers), max(1, memory/8/max(1, counterBytes))))
}

// link links the nodes of a partition to their partners, and these to them.
func (l *linker) link(p int, found [][]pairs.Partner) error {
	holdout, seed := l.Doc.Settings.Holdout, l.Doc.Settings.EvalSeed
	for i, partners := range found {
		from := l.x.Base[p] + i
		for _, partner := range partners {
			to := int(partner.Item)
			hidden := uint32(0)
			if holdout > 0 && eval.Hide(l.keys.hash(l.x, from), l.keys.hash(l.x, to), holdout, seed) {
				hidden = hiddenBit
			}
			q := l.x.PartitionAt(to)
			if err := errors.Join(l.add(p, ordered{uint32(i), uint32(to) | hidden}),
				l.add(q, ordered{uint32(to - l.x.Base[q]), uint32(from) | hidden})); err != nil {
				return err
			}
		}
	}
	return nil
}

// readOrdered returns the links that orders give to the nodes of a partition, each once, ascending by source and
// target.
func readOrdered(ctx context.Context, t *work.Task, p int) ([]ordered, error) {
	if !t.Plan.Orders {
		return nil, nil
	}
	from, err := t.OutputsOf(ctx, stages.Orders, 0)
	if err != nil {
		return nil, err
	}
	b, err := from.ReadSection(ctx, "links", p)
	if err != nil {
		return nil, err
	}
	links := make([]ordered, 0, len(b)/orderedBytes)
	for ; len(b) >= orderedBytes; b = b[orderedBytes:] {
		links = append(links, ordered{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])})
	}
	slices.SortFunc(links, func(a, b ordered) int {
		return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.target(), b.target()))
	})
	return slices.Compact(links), nil
}

// arc is a known link: the number of its source in its partition, and of its target in its own.
type arc struct{ source, target uint32 }

// compareArcs has sources ascend, and targets of one source.
func compareArcs(a, b arc) int {
	return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.target, b.target))
}

// reverse returns what orders link to the nodes of a partition: known links as arcs whose sources are positions,
// ascending. Links of orders lead both ways.
func reverse(links []ordered) []arc {
	arcs := make([]arc, 0, len(links))
	for _, l := range links {
		if l.position&hiddenBit == 0 {
			arcs = append(arcs, arc{l.position, l.source})
		}
	}
	slices.SortFunc(arcs, compareArcs)
	return arcs
}

// mergeArcs joins what is stated of the links from one partition to another, in the order of the sources, with what
// orders add, which may be stated, too. It takes the arcs whose sources lie in the first partition,
// which begins at base and ends before end, from the front of those that orders give, and returns the rest.
func mergeArcs(stated, orders []arc, base, end int) (all, rest []arc) {
	if len(orders) == 0 || int(orders[0].source) >= end {
		return stated, orders
	}
	slices.SortFunc(stated, compareArcs)
	all = stated
	for rest = orders; len(rest) > 0 && int(rest[0].source) < end; rest = rest[1:] {
		a := arc{rest[0].source - uint32(base), rest[0].target}
		if _, found := slices.BinarySearchFunc(stated, a, compareArcs); !found {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, compareArcs)
	return all, rest
}

// cutOrdered divides links into those of a node and the rest, which are of nodes that follow.
func cutOrdered(links []ordered, node int) (own, rest []ordered) {
	n := 0
	for n < len(links) && int(links[n].source) == node {
		n++
	}
	return links[:n], links[n:]
}

// addOrdered appends the positions that a node is not linked to yet, and adds the links to the facts.
func addOrdered(row []uint32, links []ordered, facts []Fact) ([]uint32, []Fact) {
	if len(links) == 0 {
		return row, facts
	}
	stated := make(map[uint32]int, len(row))
	for slot, position := range row {
		stated[position] = slot
	}
	row = slices.Clip(row)
	for _, l := range links {
		slot, ok := stated[l.position]
		if !ok {
			slot = len(row)
			row = append(row, l.position)
		}
		facts = append(facts, Fact{Slot: slot, Orders: true, Weight: 1})
	}
	return row, facts
}

// describeOrders adds to what orders say how many links were made of it.
func describeOrders(ctx context.Context, b *work.Build, linked LinkStats) (*generation.OrderStats, error) {
	s, err := work.StatsOf[generation.OrderStats](ctx, b, stages.Orders, 0)
	s.Kept = linked.Ordered / 2
	for k, n := range linked.Partners {
		s.Partners = append(s.Partners, generation.AtLeast{Partners: manyPartners[k], Items: n})
	}
	return &s, err
}
