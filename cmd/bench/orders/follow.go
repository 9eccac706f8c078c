package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"giantstream/featurize/pairs"
	"giantstream/train/generation/eval/completion"
)

// periodDays are answered for together.
const periodDays = 30

// follower is a table of what goes with what that follows orders in some way.
type follower struct {
	name   string
	live   *pairs.Live
	rows   [][]pairs.Hint // by item
	follow func(f *follower, order bool)
	spent  time.Duration
	solved int
	hits   []float64 // by period
}

// solve takes the next items, `most` at most.
func (f *follower) solve(most int) {
	began := time.Now()
	items, hints := f.live.Solve(most)
	f.spent += time.Since(began)
	f.solved += len(items)
	for k, i := range items {
		f.rows[i] = hints[k]
	}
}

// settle solves all items, many at a time, as a build does.
func (f *follower) settle() {
	for !f.live.Settled() {
		f.solve(2048)
	}
}

// method asks the table.
func (f *follower) method(items int) completion.Method {
	return completion.Method{Name: f.name, Score: func(asked []int32, scores []float64) {
		in := make([]bool, items)
		for _, i := range asked {
			in[i] = true
		}
		for i, row := range f.rows {
			for _, h := range row {
				if in[h.Partner] {
					scores[i] += h.Weight
				}
			}
		}
	}}
}

// tables are the ways in which a table follows orders: an order that was added, or a day that is over.
func tables(items int) []*follower {
	own := func(f *follower) { f.solve(f.live.Changed()) }
	all := []*follower{
		{name: "stays", follow: func(*follower, bool) {}},
		{name: "own items at once", follow: func(f *follower, _ bool) { own(f) }},
		{name: "own items at once, a tenth of all each day", follow: func(f *follower, order bool) {
			if own(f); !order {
				for n := items / 10; n > 0; n -= 32 {
					f.solve(32)
				}
			}
		}},
		{name: "all each day", follow: func(f *follower, order bool) {
			if !order {
				f.settle()
			}
		}},
	}
	for _, f := range all {
		f.rows = make([][]pairs.Hint, items)
		f.live = pairs.NewLive(pairs.DefaultRidge, 0, cmp.Compare[int32], func(int32) bool { return true })
		f.live.Grow(items)
	}
	return all
}

// following is the invoices that tables follow.
type following struct {
	number map[string]int32 // of items, by code
	tables []*follower
	orders int // that were followed
	// asked is how many invoices were asked about in each period.
	asked []int
}

// itemsOf are the numbers of what an invoice has, but for what is no item.
func (f *following) itemsOf(v *invoice) (items []int32) {
	for _, code := range v.items {
		if i, known := f.number[code]; known {
			items = append(items, i)
		}
	}
	return items
}

// add adds an invoice to all tables.
func (f *following) add(v *invoice) error {
	for _, t := range f.tables {
		var lines []pairs.Line
		for _, i := range f.itemsOf(v) {
			lines = append(lines, pairs.Line{Item: i})
		}
		if err := t.live.Set(v.number, 0, lines); err != nil {
			return err
		}
	}
	return nil
}

// ask asks about the invoices of a day.
func (f *following) ask(day int, of []*invoice) {
	if day%periodDays == 0 {
		f.asked = append(f.asked, 0)
		for _, t := range f.tables {
			t.hits = append(t.hits, 0)
		}
	}
	var orders [][]int32
	for _, v := range of {
		if items := f.itemsOf(v); len(items) >= leastItems && len(items) <= mostItems {
			orders = append(orders, items)
		}
	}
	questions := completion.Questions(orders, uint64(day)) //nolint:gosec // days from 0 on
	f.asked[len(f.asked)-1] += len(questions)
	for _, t := range f.tables {
		figures := completion.Recall(questions, len(f.number), []completion.Method{t.method(len(f.number))}, 0)
		t.hits[len(t.hits)-1] += figures[0].All * float64(len(questions))
	}
}

// pass has the tables follow the invoices of a day, one by one.
func (f *following) pass(of []*invoice) error {
	for _, v := range of {
		if err := f.add(v); err != nil {
			return err
		}
		for _, t := range f.tables {
			t.follow(t, true)
		}
	}
	for _, t := range f.tables {
		t.follow(t, false)
	}
	f.orders += len(of)
	return nil
}

// follow prints how what goes with what does from a day on, by tables that follow the invoices. Those of a day are
// asked about by what is known before it.
func follow(path, until, to string) error {
	invoices, err := readInvoices(path)
	if err != nil {
		return err
	}
	first, last, err := parseDays(until, to)
	if err != nil {
		return err
	}
	f := &following{number: map[string]int32{}}
	for k, code := range slices.Sorted(maps.Keys(textsOf(invoices))) {
		f.number[code] = int32(k)
	}
	f.tables = tables(len(f.number))
	begin := countBefore(invoices, first)
	for _, v := range invoices[:begin] {
		if err := f.add(v); err != nil {
			return err
		}
	}
	for _, t := range f.tables {
		t.settle()
		t.spent, t.solved = 0, 0
	}
	for day := 0; first.AddDate(0, 0, day).Before(last); day++ {
		end := countBefore(invoices, first.AddDate(0, 0, day+1))
		f.ask(day, invoices[begin:end])
		if err := f.pass(invoices[begin:end]); err != nil {
			return err
		}
		begin = end
	}
	f.print(invoices[0].time, first)
	return nil
}

// countBefore is how many invoices there are before a time.
func countBefore(invoices []*invoice, t time.Time) int {
	n, _ := slices.BinarySearchFunc(invoices, t, func(v *invoice, t time.Time) int { return v.time.Compare(t) })
	return n
}

func (f *following) print(from, first time.Time) {
	fmt.Printf("%d items; invoices count from %s on, and from %s on %d follow\n", len(f.number),
		from.Format(time.DateOnly), first.Format(time.DateOnly), f.orders)
	fmt.Printf("| recall@%d in %d days each |", completion.At, periodDays)
	for _, n := range f.asked {
		fmt.Printf(" of %d |", n)
	}
	fmt.Println(" all | s for 1,000 orders | ms an item |")
	for _, t := range f.tables {
		fmt.Printf("| %s |", t.name)
		sum, asked := 0.0, 0
		for k, hits := range t.hits {
			fmt.Printf(" %.3f |", hits/float64(max(1, f.asked[k])))
			sum, asked = sum+hits, asked+f.asked[k]
		}
		ms := t.spent.Seconds() * 1e3 // for one order it is what 1,000 take in s
		fmt.Printf(" %.3f | %.1f | %.2f |\n", sum/float64(max(1, asked)), ms/float64(max(1, f.orders)),
			ms/float64(max(1, t.solved)))
	}
}
