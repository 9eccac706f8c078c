package sinks

import (
	"errors"
	"slices"
	"testing"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/client"
	"giantstream/ingest/embeddingtopic"
	"giantstream/sink/embedding"
)

// TestDecodeAll: every record is taken, refused, or of another kind, and none is lost between good ones.
func TestDecodeAll(t *testing.T) {
	good := func(id string, offset int64) kafka.Message {
		m, err := embeddingtopic.Binary.Encode(embedding.Record{NodeID: id, Generation: 1, Vector: []float32{1}})
		if err != nil {
			t.Fatal(err)
		}
		m.Offset = offset
		return m
	}
	completion := func(shard, shards int, offset int64) kafka.Message {
		m, err := embeddingtopic.EncodeCompletion(embedding.Completion{Generation: 1, Shard: shard, Shards: shards})
		if err != nil {
			t.Fatal(err)
		}
		m.Offset = offset
		return m
	}
	other := completion(0, 1, 4)
	other.Headers = []kafka.Header{{Key: "control", Value: []byte("of a later version")}}
	got := client.Fetched{Records: []kafka.Message{
		good("a", 0), {Key: []byte("b"), Value: []byte("{"), Offset: 1}, good("c", 2), completion(0, 2, 3), other,
		completion(2, 2, 5), completion(0, 0, 6), good("forbidden", 7), {Key: []byte("d"), Offset: 8},
		{Key: []byte("e"), Value: []byte(`{"node_id":"e","dim":1,"embedding":[1]}`), Offset: 9},
	}, TooLarge: []client.TooLarge{{Message: kafka.Message{Offset: 10}}}}
	var refused []int64
	records, err := decodeAll(&got, func(id string) error {
		if id == "forbidden" {
			return errors.New("no")
		}
		return nil
	}, func(m *malformed) error { refused = append(refused, m.offset); return nil })
	if err != nil {
		t.Fatal(err)
	}
	var taken []int64
	for _, r := range records {
		taken = append(taken, r.Offset)
		if (r.Completion != nil) != (r.Offset == 3) || r.Deleted != (r.Offset == 8) {
			t.Errorf("offset %d: %+v", r.Offset, r)
		}
	}
	if !equal(taken, 0, 2, 3, 8) || !equal(refused, 1, 5, 6, 7, 9, 10) {
		t.Errorf("taken %v, refused %v", taken, refused)
	}
	stop := errors.New("stop")
	if _, err := decodeAll(&got, func(string) error { return nil },
		func(*malformed) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("an error of refuse is %v", err)
	}
}

func equal(got []int64, want ...int64) bool { return slices.Equal(got, want) }
