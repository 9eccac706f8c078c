package sinks

import (
	"fmt"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/client"
	"giantstream/ingest/embeddingtopic"
	"giantstream/sink/embedding"
	"giantstream/sink/vectordb"
)

// Event times beyond these, of the years 1 and 9999, are in the range of no database's type.
const minTime, maxTime = -62_135_596_800_000_000, 253_402_300_799_999_999

// maxShards is more than a pipeline may have.
const maxShards = 1 << 16

// malformed is why a record cannot be taken.
type malformed struct {
	place  string
	reason error
}

func (m *malformed) Error() string {
	return fmt.Sprintf("%s: %v. To go on without such records, set sinks.malformed: skip; they stay where they are",
		m.place, m.reason)
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
		if r, err = attributesRecord(a, x); err != nil {
			return r, false, err
		}
		r.Offset = m.Offset
		return r, true, acceptable(&r, index)
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
	return r, true, acceptable(&r, index)
}

// attributesRecord makes a record of a node's attributes.
func attributesRecord(a embedding.Attributes, index vectordb.Attributed) (r vectordb.Record, err error) {
	r.NodeID, r.OfAttributes = a.NodeID, true
	if r.Values, err = vectordb.Values(a.Attributes, index.Attributes()); err != nil {
		return r, fmt.Errorf("node %q: %w", a.NodeID, err)
	}
	return r, nil
}

// acceptable says why the record of a node cannot be stored, nil if it can.
func acceptable(r *vectordb.Record, index vectordb.Index) error {
	switch {
	case !r.OfAttributes && !r.Deleted && r.Generation < 1:
		return fmt.Errorf("the generation is %d", r.Generation)
	case r.EventTime < minTime || r.EventTime > maxTime:
		return fmt.Errorf("the event time is %d microseconds", r.EventTime)
	}
	return index.Check(r.NodeID)
}

func placeOf(topic string, partition int, offset int64) string {
	return fmt.Sprintf("topic %s, partition %d, offset %d", topic, partition, offset)
}

// decodeAll reads the records of an answer, in the order of their offsets. It calls refuse for each malformed record,
// and stops when refuse returns an error.
func decodeAll(got *client.Fetched, index vectordb.Index, refuse func(*malformed) error) (
	[]vectordb.Record, error) {
	out := make([]vectordb.Record, 0, len(got.Records))
	for _, m := range got.Records {
		r, ok, err := decode(m, index)
		if err != nil {
			if err := refuse(&malformed{placeOf(m.Topic, m.Partition, m.Offset), err}); err != nil {
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
		if err := refuse(&malformed{placeOf(m.Topic, m.Partition, m.Offset), m}); err != nil {
			return nil, err
		}
	}
	return out, nil
}
