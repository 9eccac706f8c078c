package embedding_test

import (
	"iter"
	"reflect"
	"strings"
	"testing"

	"giantstream/sink/embedding"
	"giantstream/sink/memstore"
)

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
	info, err := embedding.WriteParquet(t.Context(), &s, "part-0.parquet", seq(want))
	if err != nil {
		t.Fatal(err)
	}
	if info.Rows != int64(len(want)) || info.Bytes == 0 {
		t.Errorf("got %+v, want %d rows", info, len(want))
	}
	var got []embedding.Record
	for r, err := range embedding.ReadParquet(t.Context(), &s, "part-0.parquet") {
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
	_, err := embedding.WriteParquet(t.Context(), &s, "x", seq([]embedding.Record{{NodeID: "gone", Deleted: true}}))
	if err == nil || !strings.Contains(err.Error(), `"gone" is deleted`) {
		t.Errorf("got %v, want an error about the deleted node", err)
	}
}
