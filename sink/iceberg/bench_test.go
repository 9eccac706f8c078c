package iceberg_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"giantstream/sink/iceberg"
	"giantstream/sink/rows"
	"giantstream/sink/vectordb"
	"giantstream/sink/vectordb/vectordbtest"
)

// BenchmarkFill brings embeddings into a new table, in a catalog and a store in memory.
func BenchmarkFill(b *testing.B) {
	w := newWorld(1, 0)
	w.catalog.rnd, w.calm = nil, true
	o := w.options()
	o.Bytes, o.Every = 64<<20, time.Minute
	vectordbtest.Fill(b, iceberg.New(o))
}

// BenchmarkAttributes commits changes of an attribute alone, of nodes all over a table of 100,000 vectors of 256
// dimensions in ten data files, in a catalog and a store in memory.
func BenchmarkAttributes(b *testing.B) {
	const nodes, files = 100_000, 10
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			a := &attributed{world: newWorld(1, 0)}
			a.catalog.rnd, a.calm = nil, true
			o := a.options()
			o.Bytes, o.Every, o.Attributes = 1<<30, time.Hour, []vectordb.Attribute{price}
			if err := a.follow(b, iceberg.New(o)); err != nil {
				b.Fatal(err)
			}
			id := func(i int) string { return fmt.Sprintf("node-%08d", i*7919%nodes) }
			for f := range files {
				var all []vectordb.Record
				for i := f; i < nodes; i += files {
					r := vector(id(i), 0)
					r.Vector = make([]float32, 256)
					for j := range r.Vector {
						r.Vector[j] = float32(a.rnd.NormFloat64())
					}
					all = append(all, r, values(id(i), float64(i)))
				}
				a.send(b, all...)
				a.settle(b)
			}
			used, at := vectordbtest.Processor(), 0
			for b.Loop() {
				var all []vectordb.Record
				for range n {
					at++
					all = append(all, values(id(at%nodes), float64(at)))
				}
				a.send(b, all...)
				if err := a.Flush(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			used = vectordbtest.Processor() - used
			b.ReportMetric(float64(used.Microseconds())/float64(b.N)/1000, "cpu-ms/commit")
		})
	}
}

// BenchmarkRows commits windows that replace rows of a table of 20,000, in a catalog and a store in memory: text of 400
// bytes, 8 labels.
func BenchmarkRows(b *testing.B) {
	const nodes = 20_000
	for _, n := range []int{1, 1000, nodes} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newWorld(1, 0)
			w.catalog.rnd, w.calm = nil, true
			o := w.options()
			o.Bytes = 64 << 20
			table := iceberg.NewRows(o)
			if _, err := table.Open(b.Context(), "p", "1", "", 1, false); err != nil {
				b.Fatal(err)
			}
			seq := int64(0)
			commit := func(n int) {
				seq++
				err := table.Apply(b.Context(), 0, seq, nil, func(yield func(rows.Committed, error) bool) {
					for i := range n {
						r := rows.Row{NodeID: fmt.Sprintf("node-%08d", (i*7919+int(seq))%nodes),
							Text: strings.Repeat(fmt.Sprintf("%x words ", i*int(seq)), 50)[:400]}
						for l := range 8 {
							r.Labels = append(r.Labels, fmt.Sprintf("node-%08d", i+l))
						}
						if !yield(rows.Committed{Row: r, Seq: seq}, nil) {
							return
						}
					}
				})
				if err == nil {
					err = table.Flush(b.Context(), true)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			commit(nodes)
			if err := table.Serve(b.Context()); err != nil {
				b.Fatal(err)
			}
			used := vectordbtest.Processor()
			for b.Loop() {
				commit(n)
			}
			used = vectordbtest.Processor() - used
			b.ReportMetric(float64(used.Microseconds())/float64(b.N*n), "cpu-µs/row")
			b.ReportMetric(float64(used.Microseconds())/float64(b.N)/1000, "cpu-ms/commit")
		})
	}
}
