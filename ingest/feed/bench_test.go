package feed_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"giantstream/ingest/feed"
	"giantstream/ingest/internal/kafkatest"

	"github.com/segmentio/kafka-go"
)

// BenchmarkEmbedded produces records of 600 bytes to the embedded broker, and reads, decodes and
// merges them again.
func BenchmarkEmbedded(b *testing.B) {
	const n = 100_000
	text := strings.Repeat("A pen that writes. ", 29)
	for b.Loop() {
		e := kafkatest.Start(b, 4)
		msgs := make([]kafka.Message, n)
		for i := range msgs {
			id := fmt.Sprint("node-", i)
			msgs[i] = kafka.Message{Topic: "nodes", Key: []byte(id),
				Value: fmt.Appendf(nil, `{"id":%q,"text":%q}`, id, text), Time: day}
		}
		start := time.Now()
		e.Send(b, msgs...)
		b.ReportMetric(n/time.Since(start).Seconds(), "produced/s")

		start = time.Now()
		read := 0
		for shard := range e.Shards {
			f, err := feed.Open(b.Context(), config(e), shard, nil)
			if err != nil {
				b.Fatal(err)
			}
			for caughtUp := false; !caughtUp; {
				batch, err := f.Next(b.Context(), time.Second)
				if err != nil {
					b.Fatal(err)
				}
				read += len(batch.Mutations)
				caughtUp = batch.CaughtUp
			}
			if err := f.Close(); err != nil {
				b.Fatal(err)
			}
		}
		if read != n {
			b.Fatalf("read %d", read)
		}
		b.ReportMetric(n/time.Since(start).Seconds(), "consumed/s")
	}
}
