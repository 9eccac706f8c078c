package behaviour

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"giantstream/featurize/pairs"
	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
	"giantstream/sink/rows"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/generation"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/numeric"
)

// The settings of the view, chosen on two months of a shop's invoices (docs/MEASUREMENTS.md, "Orders as a view").
const (
	// dim is the number of directions.
	dim = rows.OrderedDim
	// sampleRows and sampleItems bound what the directions are fitted on: rows, and items that these name.
	sampleRows  = 1 << 15
	sampleItems = 1 << 17
	iterations  = 4
	// chunk is how many rows are in memory at a time.
	chunk = 1 << 12
	// copies of the orders, or of parts of them, are in memory at a time.
	copies = 3
	// itemBytes of a row in an output: number within the partition u32, then dim numbers as bfloat16.
	itemBytes = 4 + 2*dim
)

// orders are the orders of a cut, and what an Incidence does not say of them.
type orders struct {
	*pairs.Incidence
	hide      graph.Hide
	hidden    func(i, j int32) bool // what the evaluation asks for
	ages      []age                 // of each order, by its number
	customers []uint64              // hashes of who placed each, 0 where that is unknown
}

// age is where an order stands among all by time. Orders of one time, such as those of a file without times, are in the
// order of their hashes.
type age struct {
	time int64
	hash uint64
}

func (a age) compare(b age) int {
	return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.hash, b.hash))
}

// Fit makes the rows of all items that were ordered, and weighs them. It holds all orders in memory.
//
//	rows        section p: the items of partition p, ascending, of itemBytes each
//	directions  the same of the directions, and in one section more what their sums are scaled by, dim float32
func Fit(ctx context.Context, t *work.Task) error {
	o, err := read(ctx, t)
	if err != nil {
		return err
	}
	x, err := graph.LoadNumbering(ctx, t.Build)
	if err != nil {
		return err
	}
	var s generation.BehaviourStats
	if limit := t.MemoryLimit; limit > 0 && copies*o.MemoryBytes() > limit {
		s.TooLarge = true
		t.Resources.Log.Warn("what items are ordered with is no view of them: the orders take too much memory; raise "+
			"featurize.memory_limit", "orders", o.Orders(), "lines", o.Lines(), "bytes", copies*o.MemoryBytes(),
			"limit", limit)
	} else if s, err = weigh(ctx, t, x, o); err != nil {
		return err
	}
	out, directions := t.NewSections(t.Plan.Partitions), t.NewSections(t.Plan.Partitions+1)
	defer out.Close()        //nolint:errcheck // a temporary file
	defer directions.Close() //nolint:errcheck // a temporary file
	if s.Weight > 0 {
		b := make([]byte, 0, itemBytes)
		all := make([]int32, o.Items())
		for i := range all {
			all[i] = int32(i)
		}
		d, err := o.eachRow(ctx, t, all, func(i int, row []float32) error {
			p := x.PartitionAt(i)
			b = sections.AppendBF16(binary.LittleEndian.AppendUint32(b[:0], uint32(i-x.Base[p])), row)
			s.Items++
			return out.Add(p, b)
		})
		if err == nil {
			err = putDirections(directions, x, d)
		}
		if err != nil && !errors.Is(err, projection.ErrNoData) {
			return err
		}
	}
	t.Stats = s
	return errors.Join(t.PutSections(ctx, "rows", out), t.PutSections(ctx, "directions", directions))
}

// putDirections writes directions whose hashes are positions.
func putDirections(out *sections.Writer, x graph.Numbering, d *hybrid.Directions) error {
	b := make([]byte, 0, itemBytes)
	for k, position := range d.Hashes() {
		p := x.PartitionAt(int(position)) //nolint:gosec // a position
		b = binary.LittleEndian.AppendUint32(b[:0], uint32(int(position)-x.Base[p]))
		for _, v := range d.Rows()[k*dim : (k+1)*dim] {
			b = binary.LittleEndian.AppendUint16(b, v)
		}
		if err := out.Add(p, b); err != nil {
			return err
		}
	}
	b = b[:0]
	for _, v := range d.Scale() {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return out.Add(len(x.Base)-1, b)
}

// read reads the orders of the cut.
func read(ctx context.Context, t *work.Task) (o *orders, err error) {
	o = &orders{}
	o.Incidence, o.hide, err = graph.ReadOrders(ctx, t, func(_ int32, r *rows.Order) {
		o.ages = append(o.ages, age{r.Time, graph.HashOf(r.OrderID)})
		o.customers = append(o.customers, generation.CustomerOf(r))
	})
	if err != nil {
		return nil, err
	}
	o.hidden = o.hide(t.Doc.Settings.Holdout, t.Doc.Settings.EvalSeed)
	return o, nil
}

// byCustomer returns what each customer has ordered, as one order.
func (o *orders) byCustomer() (*pairs.Incidence, error) {
	type of struct {
		customer uint64
		number   int32
	}
	var all []of
	for number, customer := range o.customers {
		if customer != 0 {
			all = append(all, of{customer, int32(number)})
		}
	}
	slices.SortFunc(all, func(a, b of) int {
		return cmp.Or(cmp.Compare(a.customer, b.customer), cmp.Compare(a.number, b.number))
	})
	out := pairs.New(o.Items(), 0)
	var items []int32
	for k, a := range all {
		items = append(items, o.ItemsOf(a.number)...)
		if k+1 < len(all) && all[k+1].customer == a.customer {
			continue
		}
		slices.Sort(items)
		items = slices.Compact(items)
		if _, err := out.Add(items, len(items)); err != nil {
			return nil, err
		}
		items = items[:0]
	}
	return out, nil
}

// eachRow calls visit with the rows of those of some items that are ordered, in their order, and returns what they are
// made by, with positions for hashes. The row is valid during the call. ErrNoData of package projection: no two items
// are associated.
func (o *orders) eachRow(ctx context.Context, t *work.Task, items []int32, visit func(i int, row []float32) error) (
	*hybrid.Directions, error) {
	customers, err := o.byCustomer()
	if err != nil {
		return nil, err
	}
	a := pairs.NewAssociation(o.Incidence, customers)
	d, err := o.directions(ctx, t, a)
	if err != nil {
		return nil, err
	}
	for part := range slices.Chunk(items, chunk) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		found := a.Rows(part, hybrid.MostAssociations, t.Workers, o.hidden)
		all, known := make([]float32, len(part)*dim), make([]bool, len(part))
		parallel.ForEach(len(part), 64, t.Workers, func(_, _, from, to int) {
			var numbers []int32
			for k := from; k < to; k++ {
				numbers = numbers[:0]
				for _, j := range found[k].Index {
					numbers = append(numbers, d.Find(uint64(j))) //nolint:gosec // a position
				}
				known[k] = d.Row(numbers, found[k].Value, o.Support(part[k]), all[k*dim:(k+1)*dim])
			}
		})
		for k, i := range part {
			if !known[k] {
				continue
			}
			if err := visit(int(i), all[k*dim:(k+1)*dim]); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

// directions fits the directions on rows of items that are spread evenly over the hashes. Positions stand for their
// hashes.
func (o *orders) directions(ctx context.Context, t *work.Task, a *pairs.Association) (*hybrid.Directions, error) {
	n := o.Items()
	step := (n + sampleRows - 1) / sampleRows
	var items []int32
	for i := 0; i < n; i += step {
		items = append(items, int32(i))
	}
	sample := &sparse.Matrix{Cols: n, Start: []int64{0}}
	for part := range slices.Chunk(items, chunk) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, row := range a.Rows(part, hybrid.MostAssociations, t.Workers, o.hidden) {
			if len(row.Index) > 0 {
				sample.Append(row)
			}
		}
	}
	v, err := projection.Fit(sample, dim, projection.Options{Sample: sampleRows, MaxFeatures: sampleItems,
		Iterations: iterations, Seed: t.Doc.Settings.Seed, Workers: t.Workers})
	if err != nil {
		return nil, err
	}
	scale := make([]float32, dim) // directions that there are not are zero
	for k, s := range v.Singular() {
		scale[k] = float32(1 / math.Sqrt(s))
	}
	var positions []uint64
	var rows []uint16
	row := make([]float32, dim)
	for i := range int32(n) {
		if v.Apply(sparse.Vector{Index: []int32{i}, Value: []float32{1}}, row); numeric.Dot(row, row) == 0 {
			continue
		}
		positions = append(positions, uint64(i)) //nolint:gosec // a position
		for _, x := range row {
			rows = append(rows, numeric.BF16(x))
		}
	}
	return hybrid.NewDirections(positions, rows, scale)
}

// Load reads the view of the items and what makes its rows, nil if it weighs nothing. It skips items whose ids have the
// same hash.
func Load(ctx context.Context, t *work.Task) (*hybrid.ItemView, *hybrid.Directions, error) {
	s, err := work.StatsOf[generation.BehaviourStats](ctx, t.Build, stages.Behaviour, 0)
	if err != nil || s.Items == 0 {
		return nil, nil, err
	}
	from, err := t.OutputsOf(ctx, stages.Behaviour, 0)
	if err != nil {
		return nil, nil, err
	}
	hashes, rows, err := load(ctx, t, from, "rows")
	if err != nil {
		return nil, nil, err
	}
	view, err := hybrid.NewItemView(s.Weight, dim, hashes, rows)
	if err != nil {
		return nil, nil, from.Damaged(err)
	}
	if hashes, rows, err = load(ctx, t, from, "directions"); err != nil {
		return nil, nil, err
	}
	b, err := from.ReadSection(ctx, "directions", t.Plan.Partitions)
	if err != nil {
		return nil, nil, err
	}
	scale := make([]float32, 0, dim)
	for ; len(b) >= 4; b = b[4:] {
		scale = append(scale, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	directions, err := hybrid.NewDirections(hashes, rows, scale)
	if err != nil {
		return nil, nil, from.Damaged(err)
	}
	return view, directions, nil
}

// load reads the items of an output: hashes, and a row for each.
func load(ctx context.Context, t *work.Task, from *work.Done, name string) (hashes []uint64, rows []uint16, err error) {
	for p := range t.Plan.Partitions {
		b, err := from.ReadSection(ctx, name, p)
		if err != nil {
			return nil, nil, err
		}
		var before uint64
		err = graph.EachNode(ctx, t.Build, p, func(node int, n graph.Node) error {
			hash := graph.HashOf(string(n.ID))
			shared := node > 0 && hash == before
			before = hash
			if k := len(hashes) - 1; shared && k >= 0 && hashes[k] == hash {
				hashes, rows = hashes[:k], rows[:k*dim]
			}
			if len(b) < itemBytes || int(binary.LittleEndian.Uint32(b)) != node {
				return nil
			}
			if !shared {
				hashes = append(hashes, hash)
				for at := itemBytes - 2*dim; at < itemBytes; at += 2 {
					rows = append(rows, binary.LittleEndian.Uint16(b[at:]))
				}
			}
			b = b[itemBytes:]
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
		if len(b) > 0 {
			return nil, nil, from.Damaged(fmt.Errorf("%s of items that partition %d does not have", name, p))
		}
	}
	return hashes, rows, nil
}
