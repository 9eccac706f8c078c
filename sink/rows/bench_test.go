package rows_test

import (
	"bytes"
	"io"
	"testing"

	"giantstream/sink/rows"
)

const benchRows = 20_000

func BenchmarkWrite(b *testing.B) {
	batch := random(benchRows)
	for b.Loop() {
		w := rows.Nodes.NewWriter(io.Discard)
		if err := w.Write(batch); err != nil {
			b.Fatal(err)
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*benchRows/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkRead(b *testing.B) {
	var file bytes.Buffer
	w := rows.Nodes.NewWriter(&file)
	if err := w.Write(random(benchRows)); err != nil {
		b.Fatal(err)
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	for _, bb := range []struct {
		name    string
		columns []string
	}{
		{"all", nil},
		{"graph",
			[]string{rows.ColNodeID, rows.ColText, rows.ColClass, rows.ColLabels, rows.ColEventTime, rows.ColDeleted}},
		{"ids", []string{rows.ColNodeID, rows.ColEventTime, rows.ColDeleted}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				for _, err := range rows.Nodes.ReadFrom(bytes.NewReader(file.Bytes()), int64(file.Len()),
					rows.ReadOptions{Columns: bb.columns}) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				if n != benchRows {
					b.Fatalf("read %d rows", n)
				}
			}
			b.ReportMetric(float64(b.N)*benchRows/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(file.Len())/benchRows, "B/row")
		})
	}
}
