package mirror

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"giantstream/ingest/client"
	"giantstream/ingest/decode"
	"giantstream/stream/mutation"
)

var mine = Pipeline{1, 2, 3, 4, 5, 6, 7, 8}

func TestRecordsOfAnotherPipelineAreRefused(t *testing.T) {
	m := mutation.Mutation{Op: mutation.MirrorPut, ID: "far", Other: "near"}
	value, err := appendValue(nil, Pipeline{9}, &m)
	if err != nil {
		t.Fatal(err)
	}
	r := decode.Record{Key: []byte(m.ID), Value: value}
	got, fault := NewDecoder(1, mine).Decode(r, nil)
	if fault == nil || fault.Code != decode.BadMirror || len(got) > 0 {
		t.Errorf("a record of another pipeline becomes %+v, %v", got, fault)
	}
	r.Value = append([]byte{formatOld}, value[1+len(mine):]...)
	got, fault = NewDecoder(1, mine).Decode(r, nil)
	if fault != nil || len(got) != 1 || !reflect.DeepEqual(got[0], m) {
		t.Errorf("a record that does not name its pipeline becomes %+v, %v", got, fault)
	}
}

func TestRoundTrip(t *testing.T) {
	for _, m := range []mutation.Mutation{
		{Op: mutation.MirrorPut, ID: "far", Other: "near",
			Version: mutation.Version{EventTime: 1714521600000000, Rank: 1, Offset: 12}},
		{Op: mutation.MirrorDelete, ID: "é", Other: "x",
			Version: mutation.Version{EventTime: math.MinInt64, Offset: math.MaxInt64}},
		{Op: mutation.MirrorPut, ID: "far", Other: "near", Weight: mutation.WeightOf(0)},
		{Op: mutation.MirrorPut, ID: "far", Other: "near", Weight: mutation.WeightOf(2.5),
			Version: mutation.Version{EventTime: 5, Rank: 1}},
		{Op: mutation.MirrorPut, ID: "far", Other: "near", Kind: mutation.Kind{Name: "k"},
			Weight: mutation.WeightOf(2.5)},
		{Op: mutation.MirrorDelete, ID: "far", Other: "near", Kind: mutation.Kind{Name: "accessory_of"}},
	} {
		value, err := appendValue(nil, mine, &m)
		if err != nil {
			t.Fatal(err)
		}
		r := decode.Record{Key: []byte(m.ID), Value: value, Partition: client.Partition([]byte(m.ID), 5)}
		got, fault := NewDecoder(5, mine).Decode(r, nil)
		if fault != nil || len(got) != 1 || !reflect.DeepEqual(got[0], m) {
			t.Errorf("got %+v, %v; want %+v", got, fault, m)
		}
		r.Partition = (r.Partition + 1) % 5
		if _, fault := NewDecoder(5, mine).Decode(r, nil); fault == nil || fault.Code != decode.KeyMismatch {
			t.Errorf("in a wrong partition: %v", fault)
		}
	}
}

// What has no weight is sent as before, so that older processes read it.
func TestRecordsWithoutWeightKeepTheirBytes(t *testing.T) {
	m := mutation.Mutation{Op: mutation.MirrorPut, ID: "far", Other: "near",
		Version: mutation.Version{EventTime: 1, Rank: 1, Offset: 2}}
	got, err := appendValue(nil, mine, &m)
	want := append([]byte{2, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1, 2, 4}, "near"...)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%x, %v; want %x", got, err, want)
	}
}

func TestBadWeightsAreRefused(t *testing.T) {
	for name, value := range map[string][]byte{
		"cut off":  {1, 1, 0, 0, 0, 0, 0x80},
		"negative": {1, 1, 0, 0, 0, 0, 0x80, 0xBF, 'x'},
		"infinite": {1, 1, 0, 0, 0, 0, 0x80, 0x7F, 'x'},
		"retract":  {2, 1, 0, 0, 0, 0, 0x80, 0x3F, 'x'},
	} {
		record := append(append([]byte{formatWeight}, mine[:]...), value...)
		if m, _, err := parse([]byte("far"), record); err == nil {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

func TestOnlyMirrorOpsArePublished(t *testing.T) {
	if _, err := appendValue(nil, mine, &mutation.Mutation{Op: mutation.PutNode, ID: "a"}); err == nil {
		t.Error("PutNode was encoded")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("far"), []byte{1, 1, 0, 2, 4, 'x'})
	f.Add([]byte("far"), []byte{1, 2, 1, 0x80})
	f.Add([]byte(nil), []byte{2})
	f.Add([]byte("far"), append(append([]byte{formatKind}, mine[:]...), 2, 1, 0, 0, 0, 0, 0, 0, 1, 'k', 'x'))
	f.Add([]byte("far"), append(append([]byte{formatWeight}, mine[:]...), 1, 1, 0, 0, 0, 0, 0x80, 0x3F, 'x'))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		m, _, err := parse(key, value)
		if err != nil {
			return
		}
		again, err := appendValue(nil, mine, &m)
		if err != nil {
			t.Fatal(err)
		}
		m2, _, err := parse(key, again)
		if err != nil || !reflect.DeepEqual(m, m2) {
			t.Errorf("%+v became %+v, %v", m, m2, err)
		}
	})
}
