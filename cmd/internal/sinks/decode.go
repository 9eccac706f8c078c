package sinks

import (
	"fmt"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/client"
	"giantstream/ingest/embeddingtopic"
	"giantstream/sink/vectordb"
)

// Event times beyond these, of the years 1 and 9999, are in the range of no database's type.
const minTime, maxTime = -62_135_596_800_000_000, 253_402_300_799_999_999

// maxShards is more than a pipeline may have.
const maxShards = 1 << 16

// malformed is why a record cannot be taken.
type malformed struct {
	topic     string
	partition int
	offset    int64
	reason    error
}

func (m *malformed) Error() string {
	return fmt.Sprintf("topic %s, partition %d, offset %d: %v. To go on without such records, set "+
		"sinks.malformed: skip; the topic keeps them", m.topic, m.partition, m.offset, m.reason)
}

func (m *malformed) Unwrap() error { return m.reason }

// Final tells the reader of the topic not to fetch the record again.
func (*malformed) Final() bool { return true }

// decode reads a record of the topic; ok is false for one that says nothing to the index.
func decode(m kafka.Message, index vectordb.Index) (r vectordb.Record, ok bool, err error) {
	r.Offset = m.Offset
	a, ok, err := embeddingtopic.DecodeAttributes(m)
	if err != nil {
		return r, false, err
	}
	if ok {
		x, takes := index.(vectordb.Attributed)
		if !takes || len(x.Attributes()) == 0 {
			return r, false, nil
		}
		r.NodeID, r.OfAttributes = a.NodeID, true
		if r.Values, err = vectordb.Values(a.Attributes, x.Attributes()); err != nil {
			return r, false, fmt.Errorf("node %q: %w", a.NodeID, err)
		}
		return r, true, index.Check(r.NodeID)
	}
	if embeddingtopic.IsControl(m) {
		c, ok, err := embeddingtopic.DecodeCompletion(m)
		if ok && (c.Shards < 1 || c.Shards > maxShards || c.Shard < 0 || c.Shard >= c.Shards) {
			err = fmt.Errorf("a control record of shard %d of %d", c.Shard, c.Shards)
		}
		r.Completion = &c
		return r, ok, err // not ok, and no error: it is of another kind
	}
	if r.Record, err = embeddingtopic.Decode(m); err != nil {
		return r, false, err
	}
	switch {
	case !r.Deleted && r.Generation < 1:
		return r, false, fmt.Errorf("the generation is %d", r.Generation)
	case r.EventTime < minTime || r.EventTime > maxTime:
		return r, false, fmt.Errorf("the event time is %d microseconds", r.EventTime)
	}
	return r, true, index.Check(r.NodeID)
}

// decodeAll reads the records of an answer, in the order of their offsets. It calls refuse for each malformed record,
// and stops when refuse returns an error.
func decodeAll(got *client.Fetched, index vectordb.Index, refuse func(*malformed) error) (
	[]vectordb.Record, error) {
	out := make([]vectordb.Record, 0, len(got.Records))
	for _, m := range got.Records {
		r, ok, err := decode(m, index)
		if err != nil {
			if err := refuse(&malformed{m.Topic, m.Partition, m.Offset, err}); err != nil {
				return nil, err
			}
			continue
		}
		if ok {
			out = append(out, r)
		}
	}
	for i := range got.TooLarge {
		m := &got.TooLarge[i]
		if err := refuse(&malformed{m.Topic, m.Partition, m.Offset, m}); err != nil {
			return nil, err
		}
	}
	return out, nil
}
