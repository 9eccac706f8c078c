package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"giantstream/ingest/client"
	"giantstream/ingest/decode"
)

// ErrKeys: most records of a topic are not in the partition of their node.
var ErrKeys = errors.New("records are not where their shard reads")

const (
	// newest is how many records of a partition are sampled, counted from its end.
	newest = 8
	// maxPartitions is how many partitions of a topic are sampled, evenly spread.
	maxPartitions = 64
	sampleBytes   = 64 << 10
	sampleWait    = 100 * time.Millisecond
	parallel      = 8
)

// sample is what was found in one partition.
type sample struct {
	good, misplaced int
	first           *stray // of those misplaced
}

// stray is a record in the wrong partition.
type stray struct {
	record kafka.Message
	id     string
	want   int
}

// keys samples the records of a topic. newDecoder returns a decoder that accepts a record in any
// partition.
func keys(
	ctx context.Context, o Options, topic string, newDecoder func() (*decode.Decoder, error),
) (warning string, err error) {
	first, err := o.Client.FirstOffsets(ctx, topic)
	if err != nil {
		return "", err
	}
	end, err := o.Client.EndOffsets(ctx, topic)
	if err != nil {
		return "", err
	}
	partitions := min(o.Shards, len(end[topic]))
	samples := make([]sample, min(partitions, maxPartitions))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i := range samples {
		p := i * partitions / len(samples)
		from := max(first[topic][p], end[topic][p]-newest)
		if from >= end[topic][p] {
			continue
		}
		g.Go(func() error {
			d, err := newDecoder()
			if err == nil {
				samples[i], err = sampleKeys(gctx, o, d, topic, p, from)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return fmt.Sprintf("kafka topic %q: the keys of its records were not checked: %v", topic, err), nil
	}
	return judge(topic, samples, o.Shards)
}

// sampleKeys reads the newest records of a partition, and counts those whose key belongs in another partition.
func sampleKeys(
	ctx context.Context, o Options, d *decode.Decoder, topic string, partition int, from int64,
) (s sample, err error) {
	f, err := o.Client.Fetch(ctx, topic, partition, from, sampleBytes, sampleWait)
	if err != nil {
		return s, err
	}
	for _, m := range f.Records {
		value := m.Value
		t := o.Translators[topic]
		key, err := t.Key(ctx, m.Key)
		if err != nil {
			return s, err
		}
		if t != nil {
			var fault *decode.Fault
			if value, fault, err = t.JSON(ctx, nil, m.Value); err != nil {
				return s, err
			}
			if fault != nil {
				continue
			}
		}
		mutations, _ := d.Decode(decode.Record{Key: key, Value: value, Time: m.Time, Offset: m.Offset}, nil)
		if len(mutations) == 0 {
			continue // a dead letter for other reasons, or without edges
		}
		id := mutations[0].ID
		want := client.Partition([]byte(id), o.Shards)
		formerly := func(shards int) bool { return client.Partition([]byte(id), shards) == partition }
		switch {
		case want == partition:
			s.good++
		case slices.ContainsFunc(o.Former, formerly):
		default:
			if s.misplaced++; s.first == nil {
				s.first = &stray{m, id, want}
			}
		}
	}
	return s, nil
}

// judge refuses a topic if most of its sampled records are misplaced. A few may be one producer's
// mistake, once, and become dead letters.
func judge(topic string, samples []sample, shards int) (warning string, err error) {
	var all sample
	for _, s := range samples {
		all.good += s.good
		all.misplaced += s.misplaced
		if all.first == nil {
			all.first = s.first
		}
	}
	if all.misplaced == 0 {
		return "", nil
	}
	m := all.first.record
	found := fmt.Sprintf("%d of %d looked at; the one at partition %d, offset %d, says id %s and belongs in "+
		"partition %d of %d (murmur2); its key is %s",
		all.misplaced, all.misplaced+all.good, m.Partition, m.Offset, quote([]byte(all.first.id)), all.first.want,
		shards, quote(m.Key))
	if all.misplaced <= all.good {
		return fmt.Sprintf("kafka topic %q: some records are in the wrong partition and become dead letters: %s",
			topic, found), nil
	}
	cause := "its producer uses another partitioner than Kafka's murmur2 (librdkafka: partitioner=murmur2_random)"
	if string(m.Key) != all.first.id {
		cause = "its producer keys by something else than the id (edges: the source's id)"
	}
	return "", fmt.Errorf("kafka topic %q: %w: %s. So %s. Correct that and send the records again, or set "+
		"ingest.repartition: true to have them repartitioned through a topic of the pipeline's own",
		topic, ErrKeys, found, cause)
}

func quote(b []byte) string {
	switch {
	case b == nil:
		return "null"
	case len(b) > 64:
		return fmt.Sprintf("%.60q…", b)
	}
	return fmt.Sprintf("%q", b)
}
