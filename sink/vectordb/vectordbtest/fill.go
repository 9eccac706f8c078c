package vectordbtest

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"giantstream/sink/embedding"
	"giantstream/sink/vectordb"
)

// Fill measures how fast rows of 256 dimensions come into a new table, b.N of them in batches of 1,000. The processor
// time is that of the sink; the database's is its own.
func Fill(b *testing.B, index vectordb.Index) {
	rnd := rand.New(rand.NewPCG(1, 1))
	vectors := make([][]float32, 1000)
	for i := range vectors {
		vectors[i] = make([]float32, 256)
		for j := range vectors[i] {
			vectors[i][j] = float32(rnd.NormFloat64())
		}
	}
	topic := &Topic{Records: make([][]vectordb.Record, 1)}
	o := options(topic, index)
	o.Batch = 1000
	f := vectordb.New(o)
	if err := f.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	records := make([]vectordb.Record, 0, 1000)
	before := Processor()
	b.ResetTimer()
	for from := 0; from < b.N; from += 1000 {
		records = records[:0]
		for i := from; i < min(from+1000, b.N); i++ {
			records = append(records, vectordb.Record{Offset: int64(i), Record: embedding.Record{
				NodeID: fmt.Sprintf("product/%d", i), Generation: 1, EventTime: 1e15, Seq: 1, Vector: vectors[i%1000]}})
		}
		if err := f.Handle(b.Context(), 0, records, int64(min(from+1000, b.N))); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric(float64((Processor()-before).Microseconds())/float64(b.N), "cpu-µs/row")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// Processor is the time that this process has computed for.
func Processor() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
