package main

import (
	"context"
	"flag"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"giantstream/ingest/client"
)

// bare reads topics to their end with kafka-go and drops the records: the least that a consumer can
// do.
func bare(ctx context.Context, args []string) error {
	fl := flag.NewFlagSet("bare", flag.ExitOnError)
	brokers := fl.String("brokers", "", "host:port,…")
	if err := fl.Parse(args); err != nil {
		return err
	}
	c, err := client.New(client.Options{Brokers: strings.Split(*brokers, ",")})
	if err != nil {
		return err
	}
	defer c.Close()
	ends, err := c.EndOffsets(ctx, fl.Args()...)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for topic, partitions := range ends {
		for p, end := range partitions {
			if end > 0 {
				g.Go(func() error { return readTo(ctx, c.Brokers(), topic, p, end) })
			}
		}
	}
	return g.Wait()
}

func newReader(brokers []string, topic string, partition int) *kafka.Reader {
	return kafka.NewReader(kafka.ReaderConfig{Brokers: brokers, Topic: topic, Partition: partition,
		MinBytes: 1, MaxBytes: 10 << 20, MaxWait: 100 * time.Millisecond})
}

func readTo(ctx context.Context, brokers []string, topic string, partition int, end int64) error {
	r := newReader(brokers, topic, partition)
	defer r.Close() //nolint:errcheck // it has been read
	for {
		m, err := r.FetchMessage(ctx)
		if err != nil {
			return err
		}
		if m.Offset == end-1 {
			return nil
		}
	}
}
