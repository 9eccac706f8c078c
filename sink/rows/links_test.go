package rows_test

import (
	"bytes"
	"testing"

	"giantstream/sink/parquetio"
	"giantstream/sink/rows"
)

// earlierRow has the columns of a release that knew no weights.
type earlierRow struct {
	NodeID         string    `parquet:"node_id"`
	Text           string    `parquet:"text"`
	Class          string    `parquet:"class,optional"`
	Labels         []string  `parquet:"labels,list"`
	FeatureIndices []int32   `parquet:"feature_indices,list"`
	FeatureValues  []float32 `parquet:"feature_values,list"`
	Targets        [][]int32 `parquet:"targets,list"`
	TargetCounts   [][]int32 `parquet:"target_counts,list"`
	Generation     int64     `parquet:"generation"`
	EventTime      int64     `parquet:"event_time,timestamp(microsecond)"`
	Deleted        bool      `parquet:"deleted"`
}

func TestFilesWithoutWeightsAreRead(t *testing.T) {
	var file bytes.Buffer
	w := parquetio.NewWriter(&file, parquetio.Format[earlierRow]{Name: "rows/1",
		Size: func(*earlierRow) int { return 100 }, Generation: func(*earlierRow) int64 { return 0 }})
	if err := w.Write([]earlierRow{{NodeID: "a", Labels: []string{"b"}}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for r, err := range rows.Nodes.ReadFrom(bytes.NewReader(file.Bytes()), int64(file.Len()), rows.ReadOptions{}) {
		if n++; err != nil || r.NodeID != "a" || len(r.Labels) != 1 || len(r.LinkEnds)+len(r.LinkWeights) > 0 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if n != 1 {
		t.Errorf("%d rows", n)
	}
}
