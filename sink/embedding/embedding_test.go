package embedding_test

import (
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"

	"giantstream/sink/embedding"
	"giantstream/sink/memstore"
	"giantstream/sink/parquetio"
	"giantstream/sink/storetest"
)

func records(n, dim int) []embedding.Record {
	out := make([]embedding.Record, n)
	for i := range out {
		v := make([]float32, dim)
		for d := range v {
			v[d] = float32(i) / float32(d+1)
		}
		out[i] = embedding.Record{NodeID: fmt.Sprintf("node-%d", i), Generation: 1, Vector: v, Seq: 1}
	}
	return out
}

func seq(records []embedding.Record) iter.Seq2[embedding.Record, error] {
	return func(yield func(embedding.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func TestParquetReturnsWhatWasWritten(t *testing.T) {
	var s memstore.Store
	want := records(20_000, 256) // two row groups
	want[7].EventTime, want[7].Shard = 1_700_000_000_000_001, 5
	want[8].Vector, want[8].Status = nil, embedding.NoText
	want[9].Status = embedding.FromNeighbours
	want[10].Generation, want[10].Space = 4, 2
	info, err := embedding.WriteParquet(t.Context(), &s, "part-0.parquet", embedding.Float32, seq(want))
	if err != nil {
		t.Fatal(err)
	}
	if info.Rows != int64(len(want)) || info.Bytes == 0 {
		t.Errorf("got %+v, want %d rows", info, len(want))
	}
	var got []embedding.Record
	for r, err := range embedding.ReadParquet(t.Context(), &s, storetest.Ref(t, &s, "part-0.parquet")) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	if !reflect.DeepEqual(got, want) {
		t.Error("the records came back different")
	}
}

func TestParquetRefusesDeletedNodes(t *testing.T) {
	var s memstore.Store
	_, err := embedding.WriteParquet(t.Context(), &s, "x", embedding.Float32,
		seq([]embedding.Record{{NodeID: "gone", Deleted: true}}))
	if err == nil || !strings.Contains(err.Error(), `"gone" is deleted`) {
		t.Errorf("got %v, want an error about the deleted node", err)
	}
}

// rowV1 is a row of the format's first version.
type rowV1 struct {
	NodeID     string    `parquet:"node_id"`
	Embedding  []float32 `parquet:"embedding,list"`
	Generation int64     `parquet:"generation"`
	EventTime  int64     `parquet:"event_time,timestamp(microsecond)"`
	Shard      int32     `parquet:"shard"`
	Seq        int64     `parquet:"seq"`
}

func TestVersion1IsRead(t *testing.T) {
	var s memstore.Store
	format := parquetio.Format[rowV1]{Name: "embeddings/1", Size: func(*rowV1) int { return 64 },
		Generation: func(*rowV1) int64 { return 2 }}
	if _, err := parquetio.Put(t.Context(), &s, "old", format, func(yield func(rowV1, error) bool) {
		yield(rowV1{NodeID: "a", Embedding: []float32{1, 2}, Generation: 2, Seq: 3}, nil)
	}); err != nil {
		t.Fatal(err)
	}
	var got []embedding.Record
	for r, err := range embedding.ReadParquet(t.Context(), &s, storetest.Ref(t, &s, "old")) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	if want := []embedding.Record{{NodeID: "a", Vector: []float32{1, 2}, Generation: 2,
		Seq: 3}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestStatusOfAText(t *testing.T) {
	for _, tc := range []struct {
		text   string
		vector []float32
		want   embedding.Status
	}{
		{"a text", []float32{0, 1}, embedding.FromText},
		{"数据", []float32{0, 1}, embedding.FromText},
		{"", []float32{0, 1}, embedding.NoText},
		{" --\n!", []float32{0, 1}, embedding.NoText},
		{"unheard of", []float32{0, 0}, embedding.NoText},
	} {
		var r embedding.Record
		if r.SetVector(tc.text, tc.vector); r.Status != tc.want || (r.Vector == nil) != (tc.want == embedding.NoText) {
			t.Errorf("%q, %v: status %q, vector %v", tc.text, tc.vector, r.Status, r.Vector)
		}
	}
}
