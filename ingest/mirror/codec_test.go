package mirror

import (
	"math"
	"reflect"
	"testing"

	"giantstream/ingest/client"
	"giantstream/ingest/decode"
	"giantstream/stream"
)

func TestRoundTrip(t *testing.T) {
	for _, m := range []stream.Mutation{
		{Op: stream.MirrorPut, ID: "far", Other: "near", Version: stream.Version{EventTime: 1714521600000000, Rank: 1, Offset: 12}},
		{Op: stream.MirrorDelete, ID: "é", Other: "x", Version: stream.Version{EventTime: math.MinInt64, Offset: math.MaxInt64}},
	} {
		value, err := appendValue(nil, &m)
		if err != nil {
			t.Fatal(err)
		}
		r := decode.Record{Key: []byte(m.ID), Value: value, Partition: client.Partition([]byte(m.ID), 5)}
		got, fault := NewDecoder(5).Decode(r, nil)
		if fault != nil || len(got) != 1 || !reflect.DeepEqual(got[0], m) {
			t.Errorf("got %+v, %v; want %+v", got, fault, m)
		}
		r.Partition = (r.Partition + 1) % 5
		if _, fault := NewDecoder(5).Decode(r, nil); fault == nil || fault.Code != decode.KeyMismatch {
			t.Errorf("in a wrong partition: %v", fault)
		}
	}
}

func TestOnlyMirrorOpsArePublished(t *testing.T) {
	if _, err := appendValue(nil, &stream.Mutation{Op: stream.PutNode, ID: "a"}); err == nil {
		t.Error("PutNode was encoded")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("far"), []byte{1, 1, 0, 2, 4, 'x'})
	f.Add([]byte("far"), []byte{1, 2, 1, 0x80})
	f.Add([]byte(nil), []byte{2})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		m, err := parse(key, value)
		if err != nil {
			return
		}
		again, err := appendValue(nil, &m)
		if err != nil {
			t.Fatal(err)
		}
		m2, err := parse(key, again)
		if err != nil || !reflect.DeepEqual(m, m2) {
			t.Errorf("%+v became %+v, %v", m, m2, err)
		}
	})
}
