package sinks

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/client"
	"giantstream/ingest/embeddingtopic"
	"giantstream/sink/embedding"
	"giantstream/sink/vectordb"
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
	attributes := func(id, object string, offset int64) kafka.Message {
		m, err := embeddingtopic.EncodeAttributes(embedding.Attributes{NodeID: id, Attributes: object})
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
		attributes("a", `{"price":2,"brand":"x"}`, 11), attributes("a", "", 12), attributes("a", `{"price":"2"}`, 13),
		attributes("forbidden", "", 14), attributes("a", `{"price":"a\u0000b"}`, 15),
	}, TooLarge: []client.TooLarge{{Message: kafka.Message{Offset: 10}}}}
	var refused []int64
	records, err := decodeAll(&got, choosy{forbidden: "forbidden"}, func(m *malformed) error {
		offset, err := strconv.ParseInt(m.place[strings.LastIndexByte(m.place, ' ')+1:], 10, 64)
		refused = append(refused, offset)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var taken []int64
	for _, r := range records {
		taken = append(taken, r.Offset)
		if r.OfAttributes {
			want := map[int64][]any{11: {2.0, nil}, 12: {nil, nil}}[r.Offset]
			if !reflect.DeepEqual(r.Values, want) {
				t.Errorf("offset %d: %v, want %v", r.Offset, r.Values, want)
			}
		}
		if (r.Completion != nil) != (r.Offset == 3) || r.Deleted != (r.Offset == 8) {
			t.Errorf("offset %d: %+v", r.Offset, r)
		}
	}
	if !equal(taken, 0, 2, 3, 8, 11, 12) || !equal(refused, 1, 5, 6, 7, 9, 13, 14, 15, 10) {
		t.Errorf("taken %v, refused %v", taken, refused)
	}
	stop := errors.New("stop")
	if _, err := decodeAll(&got, choosy{},
		func(*malformed) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("an error of refuse is %v", err)
	}
}

// choosy is an index that takes two attributes, and all nodes but one.
type choosy struct {
	vectordb.Index
	forbidden string
}

func (choosy) Attributes() []vectordb.Attribute {
	return []vectordb.Attribute{{Name: "price", Type: vectordb.Number}, {Name: "stock", Type: vectordb.Number}}
}

func (c choosy) Check(id string) error {
	if id == c.forbidden {
		return errors.New("no")
	}
	return nil
}

func equal(got []int64, want ...int64) bool { return slices.Equal(got, want) }
