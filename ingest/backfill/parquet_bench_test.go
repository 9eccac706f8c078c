package backfill

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"
)

// BenchmarkParquet reads products: an id, two texts, a list of five far ends, a price, a time.
func BenchmarkParquet(b *testing.B) {
	type product struct {
		ID      string    `parquet:"id"`
		Title   *string   `parquet:"title,optional"`
		Text    string    `parquet:"text"`
		Also    []string  `parquet:"also,list"`
		Price   float64   `parquet:"price"`
		Updated time.Time `parquet:"updated,timestamp(millisecond)"`
	}
	rows := make([]product, 20_000)
	for i := range rows {
		title := fmt.Sprintf("product number %d of the catalog", i)
		rows[i] = product{ID: fmt.Sprintf("P%06d", i), Title: &title, Price: float64(i) / 100,
			Text:    fmt.Sprintf("%d: a text of some length, about as long as what a shop says of a product", i),
			Updated: time.UnixMilli(1_600_000_000_000 + int64(i))}
		for k := range 5 {
			rows[i].Also = append(rows[i].Also, fmt.Sprintf("P%06d", (i*7+k)%len(rows)))
		}
	}
	data := parquetOf(b, [][]product{rows})
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		p, err := newParquetReader(object(data), 1<<20, []string{"id", "title", "text", "also", "price", "updated"},
			false, func(int64) {})
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for {
			_, err := p.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if err := p.Close(); err != nil || n != len(rows) {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(len(rows)*b.N)/b.Elapsed().Seconds(), "rows/s")
}
